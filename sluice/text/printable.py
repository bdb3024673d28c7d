"""Text that somebody else has chosen (a client id, a topic, a pattern), as it may stand in a line on a terminal."""


def printable(text: str) -> str:
    """The text with an escape for whatever would end the line, color it or hide a part of it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
