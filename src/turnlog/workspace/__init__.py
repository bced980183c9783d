"""The files an agent touched: scan them, keep them as trees, compare trees, put files back.

tree · cache        the values: folders by digest; what the last scan saw
ignore · scan       what is covered; the files as they are now
read · found        reading files through handles; one folder while it is looked at
plan                what a rewind would do to each path, and why not
restore             doing it: atomically, through folder handles, never outside the root
diff                what changed, for people
"""
