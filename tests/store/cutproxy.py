"""A line to a server that can be cut after any byte, in either direction, or stand still."""

import contextlib
import socket
import threading


class CutProxy:
    """Listens on loopback and passes everything on, until it is told otherwise."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._mutex = threading.Lock()
        self._left: dict[str, int | None] = {"ask": None, "answer": None}
        self._flows = threading.Event()
        self._flows.set()
        self._open: set[socket.socket] = set()
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut_after(self, direction: str, count: int) -> None:
        """Cut the line once that many more bytes have gone that way: `ask` to the server, `answer` from it."""
        with self._mutex:
            self._left = {"ask": None, "answer": None, direction: count}

    def whole(self) -> None:
        """No cut any more."""
        with self._mutex:
            self._left = {"ask": None, "answer": None}

    def stall(self) -> None:
        """Nothing goes through, and nothing is cut."""
        self._flows.clear()

    def flow(self) -> None:
        """It goes on."""
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            with self._mutex:
                self._open |= {client, server}
            for source, sink, direction in ((client, server, "ask"), (server, client, "answer")):
                thread = threading.Thread(target=self._pass, args=(source, sink, direction), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                with self._mutex:
                    left = self._left[direction]
                    cut = left is not None and len(data) > left
                    if cut:
                        data = data[:left]
                        self._left[direction] = None
                        self.cuts += 1
                    elif left is not None:
                        self._left[direction] = left - len(data)
                sink.sendall(data)
                if cut:
                    break
        for end in (sink, source):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._flows.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._mutex:
            ends = list(self._open)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in ends:
            end.close()
