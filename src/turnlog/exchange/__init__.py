"""Sessions of other agents: brought in, written for them, handed over.

source · origin     finding sessions on the disk; what a session here says of the one that it was read from
turnlock            one process at a time imports a session whose turns hooks report
importing           run → sessionimport → importer → keyedimport or contentimport → entrybatch
exporting           transcript → writing → readback → output; handover and resumable for the agent's own home
keeping             run → keptfile → keptframe: compressed copies of what agents delete; retention: when they do
"""
