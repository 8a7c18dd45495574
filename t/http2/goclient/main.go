// goclient - Go's own HTTP/2 client against one server; t/http2/clients.t reads what it prints
//
//	goclient https://localhost:8443 ca.pem
//
// The server has /f/1 to /f/200 ("file N\n"), /large, and /app/upload, which answers length and MD5 of what it got.
// A line has the name of a figure and its value.
package main

import (
	"context"
	"crypto/md5"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
)

const parallel = 200

var (
	base    string
	client  *http.Client
	dialled int32
)

func must(err error) {
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

// Each connection is counted: the client may open as many as it likes.
func newClient(ca string) *http.Client {
	pem, err := os.ReadFile(ca)
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	var d net.Dialer
	return &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			atomic.AddInt32(&dialled, 1)
			return d.DialContext(ctx, network, addr)
		},
	}}
}

// True if this file is there, over HTTP/2, with its bytes.
func good(n int) bool {
	r, err := client.Get(fmt.Sprintf("%s/f/%d", base, n))
	if err != nil {
		return false
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return err == nil && r.ProtoMajor == 2 && r.StatusCode == 200 && string(body) == fmt.Sprintf("file %d\n", n)
}

// The first request learns how many streams the server allows; without it Go believes in 100.
func gets() {
	if good(1) {
		fmt.Println("first good")
	}
	var all sync.WaitGroup
	var right int32
	begin := make(chan struct{})
	for n := 1; n <= parallel; n++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			<-begin
			if good(n) {
				atomic.AddInt32(&right, 1)
			}
		}(n)
	}
	close(begin)
	all.Wait()
	fmt.Println("parallel", right)
}

// The body comes from a pipe: its length is unknown, and HTTP/2 has no chunks.
func upload() {
	in, out := io.Pipe()
	sum := md5.New()
	size := 0
	go func() {
		for i := 0; i < 2000; i++ {
			n, _ := fmt.Fprintf(io.MultiWriter(out, sum), "%0*d\n", 1+i%1500, i)
			size += n
		}
		out.Close()
	}()
	r, err := client.Post(base+"/app/upload", "text/plain", in)
	must(err)
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	must(err)
	fmt.Printf("upload HTTP/%d %d length=%q\n", r.ProtoMajor, r.StatusCode, r.Header.Get("X-Length"))
	if string(said) == fmt.Sprintf("%d %x", size, sum.Sum(nil)) {
		fmt.Println("uploaded whole")
	}
}

// Leaves a reply after its first bytes: RST_STREAM.
func leave() {
	ctx, cancel := context.WithCancel(context.Background())
	q, err := http.NewRequestWithContext(ctx, "GET", base+"/large", nil)
	must(err)
	r, err := client.Do(q)
	must(err)
	_, err = io.ReadFull(r.Body, make([]byte, 1000))
	must(err)
	cancel()
	r.Body.Close()
	if good(2) {
		fmt.Println("after-reset good")
	}
	r, err = client.Get(base + "/large")
	must(err)
	defer r.Body.Close()
	sum := md5.New()
	n, err := io.Copy(sum, r.Body)
	must(err)
	fmt.Printf("large %d %x\n", n, sum.Sum(nil))
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: goclient URL CA")
		os.Exit(64)
	}
	base, client = os.Args[1], newClient(os.Args[2])
	gets()
	upload()
	leave()
	fmt.Println("connections", dialled)
}
