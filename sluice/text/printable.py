"""Safe display of foreign text, such as a client id, a topic or a pattern, on a line of a terminal."""


def printable(text: str) -> str:
    """Escape the characters that would end the line, color it or hide a part of it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
