"""A model asks in sentences: the right session is among the first five.

`questions.txt` has forty sessions of a web shop: what was asked then, what a tool said, what the answer was; and a
question as a model would write it later. Behind them is what else was said in that shop, with the same words in it.
"""

from pathlib import Path

import turnlog
from tests.mcp.desk import Desk
from turnlog import Text, ToolCall

WANTED = 32
"""Of forty; 36 were found when this was written."""
TOPICS, _, REST = Path(__file__).with_name("questions.txt").read_text().partition("\n---\n")
SESSIONS = [topic.strip().split("\n") for topic in TOPICS.split("\n\n") if topic.strip()]
NOISE = REST.strip().split("\n")


def test_forty_questions(person: Path):
    ids: list[str] = []
    with turnlog.open(durability="flush", checkpoints=False) as home:
        for number in range(3 * len(SESSIONS)):
            topic, is_noise = divmod(number, 3)
            prompt, output, answer, _ = SESSIONS[topic]
            session = home.create(workspace=".", agent="my-agent")
            if is_noise:
                prompt = NOISE[(topic * 2 + is_noise) % len(NOISE)]
                output = "\n".join(one[1] for one in SESSIONS[topic % 7 :: 11]) + " how we did it, what was the problem"
                answer = f"I looked at it: {NOISE[topic % len(NOISE)]}. It works as it should, nothing was changed."
            else:
                ids.append(session.id)
            session.user(prompt)
            session.assistant([Text("Let me see."), ToolCall(id="c", name="bash", input={"command": "make test"})])
            session.tool_result("c", output)
            session.assistant(answer)
    desk = Desk()
    missed = [
        question
        for id, (_, _, _, question) in zip(ids, SESSIONS, strict=True)
        if id not in desk.sessions(question, limit=5)
    ]
    desk.close()
    assert len(SESSIONS) == 40
    assert len(SESSIONS) - len(missed) >= WANTED, missed
