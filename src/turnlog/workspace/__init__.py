"""The files an agent touched: scanning them, storing them as trees, comparing trees, restoring files.

tree · cache                  the values: folders by digest; the results of the last scan
ignore                        which files are left out: the rules of git, and finding those outside the tree
scan · folderscan             the files as they are now; one folder that changed
ignoredscan                   small ignored files, in a tree of their own
handle · read · sink          opening folders, reading files, and where their content goes
metadata · systemerror        owners and attributes; errors that are not those of one file
git                           the state of git, from its files
plan                          what a rewind would do to each path, and why not
restore · pathstate           doing it: atomically, through folder handles, never outside the root
rootfolder                    the folder of a root itself, when it is missing
diff                          what changed, for people
"""
