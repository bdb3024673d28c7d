"""What the documentation's `curl` does where there is none: `curl -s [-X METHOD] [-d BODY] URL`, loopback only."""

import sys
from argparse import ArgumentParser
from http.client import HTTPConnection
from urllib.parse import urlsplit


def main(words: list[str]) -> None:
    """Prints the body of the answer, whatever its status, as curl does."""
    parser = ArgumentParser(prog="curl")
    parser.add_argument("-s", action="store_true", required=True)
    parser.add_argument("-X", dest="method")
    parser.add_argument("-d", dest="body")
    parser.add_argument("url")
    given = parser.parse_args(words)
    url = urlsplit(given.url)
    target = f"{url.path}?{url.query}" if url.query else url.path
    connection = HTTPConnection(url.netloc)
    connection.request(given.method or ("GET" if given.body is None else "POST"), target, given.body)
    sys.stdout.buffer.write(connection.getresponse().read())


if __name__ == "__main__":
    main(sys.argv[1:])
