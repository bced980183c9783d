"""Sessions of other agents, brought into a home: each record once, and nothing that is here is removed.

run                            all sources in their order, parents first
counterpart · sessionimport    which session a source is here; importing it, or bringing it up to date
creation                       a session that is new; a fork shares the beginning of its parent
importer                       one reading: its records, then facts, totals, the head, problems
keyedimport · contentimport    records with keys of their own; records that only their content tells apart
entrybatch                     appending entries, behind what others append meanwhile
sourceindex · turnclaim        what the session has of the source; which turn of the hooks a record belongs to
spending · resumestate         usage that is not booked yet; where the next import resumes
"""
