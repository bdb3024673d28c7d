"""A replacement of `curl` for documentation tests, limited to loopback.

curl -s [-X METHOD] [-H HEADER]... [-d BODY | --json BODY] URL
"""

import sys
from argparse import ArgumentParser
from http.client import HTTPConnection
from urllib.parse import urlsplit


def main(words: list[str]) -> None:
    """Print the response body for any status, as curl does."""
    parser = ArgumentParser(prog="curl")
    parser.add_argument("-s", action="store_true", required=True)
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="form")
    parser.add_argument("--json")
    parser.add_argument("url")
    given = parser.parse_args(words)
    url = urlsplit(given.url)
    target = f"{url.path}?{url.query}" if url.query else url.path
    connection = HTTPConnection(url.netloc)
    headers = dict(line.split(": ", 1) for line in given.headers)
    body = given.form if given.json is None else given.json
    if body is not None:
        headers.setdefault("content-type", f"application/{'json' if given.json else 'x-www-form-urlencoded'}")
    connection.request(given.method or ("GET" if body is None else "POST"), target, body, headers)
    sys.stdout.buffer.write(connection.getresponse().read())


if __name__ == "__main__":
    main(sys.argv[1:])
