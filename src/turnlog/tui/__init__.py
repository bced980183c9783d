"""Every session on this machine in the terminal: type, see, press Enter. Needs `turnlog[tui]`.

browser       starts, ends, gives the terminal back whatever happens
screens/      what fills the terminal, one file per screen, with its keys
framedscreen  what every screen has: a last line, a wheel, what went wrong
application   the application, as its screens know it
sessionlist, pagedsession, changelist, changeview   what stands on the screens, without a terminal: lines of text
linecache, finder   the lines of a session, drawn when they are looked at; from match to match in them
frame         what a screen shows of a session at one moment, and what came of a move
canvas        lines on the screen, only those drawn again that changed
footline, field   the last line with its keys; a line to type in
errand        catalog and sessions are asked in threads of their own
style         how lines are painted
terminal      stderr, on which all of it is drawn
"""
