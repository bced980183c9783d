"""Every session on this machine in the browser: local, without a daemon, without a build step. Needs `turnlog[web]`.

pages/      one file per page, or for what pages ask for while they are read: its `ROUTES`
server      listens, answers, ends            guard     who may ask, and what every answer says
disconnect  cancels what nobody waits for     stream    follows a session, once for all who look
viewer      what all pages share              query     how an address wants a conversation shown
change      carries out what a page changes   errorpage what is said where something is missing or broken

frame      the frame of every page            element   small pieces of pages: links, tables, times
address    addresses of pages                 article   pieces of a conversation
outline    the outline beside it              sessionrow  a session in a list
chart      charts as SVG
"""
