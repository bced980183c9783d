"""Sessions written for other agents, and handed over to them.

transcript · touchedfile    a session as the writer of a format sees it, and the files it changed
writing · exportcopy        a transcript in the form of an agent, as a copy without spending
readback                    nothing may be missing when the format reads it again
output                      to a file or a folder that a person names
handover · resumable        to the agent's own home, with the command that resumes it there
resumealias                 the new id of a session that its own agent continues
"""
