"""The hook: finding functions as modules are imported, replacing them, putting them back.

patching      `install`, `uninstall` and `installed`: which rows are wrapped, and the one installation in force
patterns      which rows `only` and `exclude` select
installation  everything that one `install` changes, and how to undo it
attributes    one attribute of a module or class: finding, replacing, putting back
aliases       other names and default values that hold a replaced function
misnamed      rows of a user's own catalogue that name nothing
lifts         the loops that rows name, lifted
lines         something done before each line at the top of the program
watching      which functions hold the time, for `accel run --auto`
imports       finding modules, and patching them as soon as they are imported
"""
