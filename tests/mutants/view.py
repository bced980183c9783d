"""Faults in `view`."""

from tests.mutants.mutant import Mutant

SHOWN_ATTACKS = "tests/view/test_attack.py"
REDACTED = "tests/view/test_redact.py"

MUTANTS = [
    Mutant(
        "shown: a page that does not escape",
        "view/html.py",
        "            return escape(shown, quote=True)\n",
        "            return shown\n",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a page that lets links lead anywhere",
        "view/html.py",
        'return url.lower().startswith(("https://", "http://", "mailto:"))',
        "return True",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a fence as long as one inside",
        "view/document.py",
        'ticks = "`" * max(3, 1 + max(',
        'ticks = "`" * max(3, 0 * max(',
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a bar that ends code in a table",
        "view/document.py",
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
        "view/redact.py",
        "            self._known.setdefault(secret, kind)\n",
        "            pass\n",
        (REDACTED,),
    ),
    Mutant(
        "redacted: every block by itself",
        "view/redact.py",
        '        whole = "".join(pieces)\n',
        "        return [self.text(piece) for piece in pieces]\n        whole = ''\n",
        (REDACTED,),
    ),
    Mutant(
        "redacted: a value over and over again",
        "view/assigned.py",
        "after = seen if tries > _TRIES else after",
        "after = after",
        (REDACTED,),
    ),
    Mutant(
        "redacted: no password that a sentence tells",
        "view/assigned.py",
        "spot = spot or _said(text, name, after)",
        "spot = spot or None",
        (REDACTED,),
    ),
    Mutant(
        "redacted: words with dashes as tokens",
        "view/assigned.py",
        "(value, least=8 if is_quoted else 12) and not _is_dashed(value)",
        "(value, least=8 if is_quoted else 12)",
        (REDACTED,),
    ),
    Mutant(
        "redacted: no private key whose end is missing",
        "view/secret.py",
        "done = _last(text, end) if has_end else _run(text, match.end())",
        "done = _last(text, end) if has_end else match.end()",
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
]
