"""The hook: find functions as modules are imported, replace them, restore them.

patching      `install`, `uninstall` and `installed`: which rows are wrapped, and the one installation in force
accelerating  what stands in the place of functions and loops
patterns      which rows `only` and `exclude` select
installation  everything that one `install` changes, and how to undo it
attributes    one attribute of a module or class: finding, replacing, restoring
aliases       other names and default values that hold a replaced function
misnamed      rows of a user's own catalogue that name nothing
lifts         the loops that rows name, outlined
watching      which functions take the time, for `accel run --auto`; programs that spend it in compiled code
imports       finding modules, and patching them as soon as they are imported
loader        runs the code of such a module, and patches it then
"""
