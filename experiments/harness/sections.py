"""Replaces generated sections of Markdown files."""


def replaced(text: str, begin: str, section: str, end: str) -> str:
  """Replaces the text between two marks.

  Args:
    text: the file, which contains both marks once.
    begin: the mark before the section.
    section: the new section.
    end: the mark after the section.
  """
  before, rest = text.split(begin)
  _, after = rest.split(end)
  return f'{before}{begin}\n\n{section.rstrip()}\n\n{end}{after}'
