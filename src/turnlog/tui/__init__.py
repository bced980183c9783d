"""Every session on this machine in the terminal: type, see, press Enter. Needs `turnlog[tui]`.

browser    the application: starts, ends, gives the terminal back whatever happens
screens/   what fills the terminal, one file per screen, with its keys
listed, pagedsession, changed   what stands on them, without a terminal: lines of text
canvas     lines on the screen, only those drawn again that changed
errand     catalog and sessions are asked in threads of their own
"""
