"""
A faulty proxy in front of a server of objects: at a share of the requests it delays, cuts, resets, answers 500 or 503,
says SlowDown inside a 200, lies about lengths, or does what was asked and loses the answer.
"""

import http.client
import random
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = ("delay", "cut", "reset", "500", "503", "slow down", "too long", "too short", "lost answer")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do(self):
        p = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with p.lock:
            p.nrequests += 1
            fault = p.chance.choice(p.faults) if p.chance.random() < p.share else None
            if fault:
                p.met[fault] = p.met.get(fault, 0) + 1
        if fault == "reset":
            return self.reset()
        if fault in ("500", "503"):
            return self.say(int(fault), b"<Error><Code>InternalError</Code></Error>")
        if fault == "slow down":
            return self.say(200, b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>")
        if fault == "delay":
            time.sleep(p.chance.random())
        upstream = http.client.HTTPConnection(p.host, p.port, timeout=300)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("expect", "connection")}
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        data = answer.read()
        upstream.close()
        if fault == "lost answer":
            return self.reset()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                self.send_header(name, value)
        length = len(data) if self.command != "HEAD" else int(answer.headers.get("Content-Length") or 0)
        lies = len(data) > 8 and self.command == "GET"
        said = length + 7 if lies and fault == "too long" else length - 5 if lies and fault == "too short" else length
        self.send_header("Content-Length", str(said))
        self.end_headers()
        if fault == "cut" and data:
            self.wfile.write(data[: len(data) // 2])
            return self.reset()
        if self.command != "HEAD":
            self.wfile.write(data)
        if said != length:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do

    def say(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def reset(self):
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()
        self.close_connection = True


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, address):
        pass  # a client that hung up


class Proxy:
    def __init__(self, url, share=0.2, seed=1, faults=FAULTS):
        self.host, port = url.split("//")[1].split(":")
        self.port, self.share, self.faults = int(port), share, faults
        self.chance, self.lock, self.met, self.nrequests = random.Random(seed), threading.Lock(), {}, 0
        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.proxy = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
