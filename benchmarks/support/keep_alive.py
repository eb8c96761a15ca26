"""The smallest HTTP client that keeps its connection, so that a measurement shows the server and not the client."""

import asyncio
from urllib.parse import urlsplit

__all__ = ["KeepAlive"]


class KeepAlive:
    """One connection; requests go one after another. It counts the bytes of heads and bodies."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self._host, self._port = parts.hostname, parts.port
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.bytes_sent = 0
        self.bytes_received = 0

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The answer's status and body. A connection that was closed while it was idle is opened anew, once."""
        fresh = self._streams is None
        try:
            return await self._post(path, body)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            if fresh:
                raise
            return await self._post(path, body)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        request = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        writer.write(request)
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
        answer = await reader.readexactly(int(fields[b"content-length"]))
        self.bytes_sent += len(request)
        self.bytes_received += len(head) + len(answer)
        if fields.get(b"connection", b"").strip() == b"close":
            self.close()
        return int(head.split(None, 2)[1]), answer
