"""Every session on this machine in the browser: local, without a daemon, without a build step. Needs `turnlog[web]`.

server   what listens and ends        guard   who may ask, and what every answer says
leaving  gives up what nobody waits for any more
stream   follows a session, once for all who look        pages/   one file per page: its `ROUTES`
"""
