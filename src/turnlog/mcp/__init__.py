"""`turnlog mcp`: what was said and done, for agents. A server of the Model Context Protocol on stdin and stdout.

protocol   JSON-RPC 2.0, one message a line: what is asked, and what is answered
server     the methods of the protocol
offer      the tools as a model sees them, what they take, and what is said about them
tools/     one file per tool: its name is the tool's, its `call` answers
library    what all tools share: the catalog, sessions open for reading
scope      which sessions and files a client may see
caller     which agent asks: its own session is left out
quote      texts of sessions, made safe for a model: secrets removed, invisible characters made visible
passage    entries of a session as text; long output of tools is folded
page       answers of limited size, whole items only
prompt     the prompts of the protocol
resource   the resources of the protocol: a session, or one of its turns
install    the server into the settings of agents, and out of them; agents/ has one file per agent

Nothing is written but the catalog, unless it was started with `--allow-rewind`.
"""
