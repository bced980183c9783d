"""Faults in `view`."""

from tests.mutants.mutant import Mutant

SHOWN_ATTACKS = "tests/view/test_attack.py"
REDACTED = "tests/view/test_redact.py"

MUTANTS = [
    Mutant(
        "shown: a page that does not escape",
        "view/html/row.py",
        "            return escape(visible, quote=True)\n",
        "            return visible\n",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a page that lets links lead anywhere",
        "view/markdown/parser.py",
        'return url.lower().startswith(("https://", "http://", "mailto:"))',
        "return True",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a fence as long as one inside",
        "view/markdown/document.py",
        'ticks = "`" * max(3, 1 + max(',
        'ticks = "`" * max(3, 0 * max(',
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a bar that ends code in a table",
        "view/markdown/document.py",
        '" | ".join(map(_cell, row))',
        '" | ".join(map(_spans, row))',
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: escape sequences of a tool",
        "view/visible.py",
        '    return safe(text.replace("\\r\\n", "\\n") if "\\r" in text else text)\n',
        "    return text\n",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "redacted: only where it was found first",
        "view/secret/redactor.py",
        "            self._known.setdefault(secret, kind)\n",
        "            pass\n",
        (REDACTED,),
    ),
    Mutant(
        "redacted: every block by itself",
        "view/secret/redactor.py",
        '        whole = "".join(pieces)\n',
        "        return [self.text(piece) for piece in pieces]\n        whole = ''\n",
        (REDACTED,),
    ),
    Mutant(
        "redacted: a value over and over again",
        "view/secret/assignment.py",
        "after = seen if tries > _TRIES else after",
        "after = after",
        (REDACTED,),
    ),
    Mutant(
        "redacted: no password that a sentence tells",
        "view/secret/assignment.py",
        "spot = spot or _stated_value(text, name, after)",
        "spot = spot or None",
        (REDACTED,),
    ),
    Mutant(
        "redacted: words with dashes as tokens",
        "view/secret/assignment.py",
        "(value, least=8 if is_quoted else 12) and not _is_dashed(value)",
        "(value, least=8 if is_quoted else 12)",
        (REDACTED,),
    ),
    Mutant(
        "redacted: no private key whose end is missing",
        "view/secret/pattern.py",
        "key_end = _end_marker(text, end) if has_end else _key_lines_end(text, match.end())",
        "key_end = _end_marker(text, end) if has_end else match.end()",
        (REDACTED,),
    ),
    Mutant(
        "view: a family of emoji is cut in two",
        "view/visible.py",
        "    return iter_graphemes(text)",
        "    return text",
        ("tests/view/test_visible.py",),
    ),
    Mutant(
        "spans: a split answer is paid for twice",
        "view/otel/sessionspan.py",
        "if entry.usage is not None and note_request(self._paid, entry.request):",
        "if entry.usage is not None:",
        ("tests/reader/test_telemetry.py",),
    ),
    Mutant(
        "shown: an output that only looks like a frame",
        "view/toolcall.py",
        'if not isinstance(output, str) or not set(frame) <= {"output", "metadata"}:',
        "if False:",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "redact: of two fields with the same replacement one stays",
        "view/secret/redactor.py",
        'clean[_unused(self._string(key, ""), clean)] = ',
        'clean[self._string(key, "")] = ',
        (REDACTED,),
    ),
]
