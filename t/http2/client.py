#!/usr/bin/python3
"""A client of HTTP/2 on Python's h2, which checks each frame and field that it gets.

    client.py PORT [CA]         over TLS if there is an authority

The server has /f/1 to /f/50 ("file N\n"), /large, and /app/upload, which answers length and MD5 of what it got.
t/http2/clients.t reads what it prints: a figure and its value on each line.
"""
import hashlib
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

PATIENCE = 60
ALL_OF_IT = 1 << 24


class Client:
    def __init__(self, port, ca, window=None):
        self.sock = socket.create_connection(('127.0.0.1', port), timeout=PATIENCE)
        if ca:
            tls = ssl.create_default_context(cafile=ca)
            tls.set_alpn_protocols(['h2', 'http/1.1'])
            self.sock = tls.wrap_socket(self.sock, server_hostname='localhost')
            print('alpn', self.sock.selected_alpn_protocol())
        self.scheme = 'https' if ca else 'http'
        self.conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding='utf-8'))
        self.conn.initiate_connection()
        if window is not None:
            self.conn.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.status, self.body, self.ended = {}, {}, {}
        self.pongs = 0
        self.own_windows = window is not None
        self.flush()

    def flush(self):
        self.sock.sendall(self.conn.data_to_send())

    def open(self, method, path, end=True):
        stream = self.conn.get_next_available_stream_id()
        self.conn.send_headers(stream, [(':method', method), (':path', path), (':scheme', self.scheme), (':authority', 'localhost')], end_stream=end)
        self.body[stream] = b''
        self.flush()
        return stream

    def step(self):
        got = self.sock.recv(65536)
        if not got:
            sys.exit('the server has closed the connection')
        for event in self.conn.receive_data(got):
            self.take(event)
        self.flush()

    def take(self, event):
        if isinstance(event, h2.events.ResponseReceived):
            self.status[event.stream_id] = dict(event.headers)[':status']
        elif isinstance(event, h2.events.DataReceived):
            self.body[event.stream_id] += event.data
            if not self.own_windows and event.stream_id not in self.ended:
                self.conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
            self.ended[event.stream_id] = type(event).__name__
        elif isinstance(event, h2.events.PingAckReceived):
            self.pongs += 1
        elif isinstance(event, h2.events.ConnectionTerminated):
            sys.exit('GOAWAY %s' % event.error_code)

    def until(self, done):
        while not done():
            self.step()

    def reply(self, stream):
        self.until(lambda: stream in self.ended)
        return self.status[stream], self.body[stream]

    def get(self, path):
        return self.reply(self.open('GET', path))

    def post(self, path, body):
        stream = self.open('POST', path, end=False)
        while body:
            self.until(lambda: self.conn.local_flow_control_window(stream) > 0)
            room = min(self.conn.local_flow_control_window(stream), self.conn.max_outbound_frame_size)
            self.conn.send_data(stream, body[:room], end_stream=room >= len(body))
            body = body[room:]
            self.flush()
        return self.reply(stream)

    def answered_ping(self):
        """What the server sends before its answer has come when this returns."""
        before = self.pongs
        self.conn.ping(b'01234567')
        self.flush()
        self.until(lambda: self.pongs > before)


def summed(body):
    return '%d %s' % (len(body), hashlib.md5(body).hexdigest())


def gets(c):
    streams = [c.open('GET', '/f/%d' % n) for n in range(1, 51)]
    replies = [c.reply(stream) for stream in streams]
    print('gets', sum(reply == ('200', b'file %d\n' % (n + 1)) for n, reply in enumerate(replies)))
    print('large', summed(c.get('/large')[1]))


def upload(c):
    body = b''.join(b'line %d\n' % n for n in range(100_000))
    status, said = c.post('/app/upload', body)
    print('upload', status, 'whole' if said.decode() == summed(body) else 'not whole')


def reset(c):
    stream = c.open('GET', '/large')
    c.until(lambda: c.body[stream])
    c.conn.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
    c.ended[stream] = 'here'
    c.flush()
    print('after-reset', c.get('/f/1')[0])


def windows(c):
    """The client gives 1000 bytes, then 500 more, then all."""
    stream = c.open('GET', '/large')
    c.until(lambda: len(c.body[stream]) >= 1000)
    c.answered_ping()
    first = len(c.body[stream])
    c.conn.increment_flow_control_window(500, stream)
    c.flush()
    c.until(lambda: len(c.body[stream]) >= 1500)
    c.answered_ping()
    print('windows', first, len(c.body[stream]), stream in c.ended)
    c.conn.increment_flow_control_window(ALL_OF_IT)
    c.conn.increment_flow_control_window(ALL_OF_IT, stream)
    c.flush()
    print('rest', summed(c.reply(stream)[1]))


def main(port, ca=None):
    c = Client(int(port), ca)
    gets(c)
    upload(c)
    reset(c)
    windows(Client(int(port), ca, window=1000))


main(*sys.argv[1:])
