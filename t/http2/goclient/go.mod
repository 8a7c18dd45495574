// A client of HTTP/2 for t/http2/clients.t, of Go's standard library alone.
module stat-accel/goclient

go 1.19
