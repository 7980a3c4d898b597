"""The figures of a run, and the reports made from them.

ledger                what happened to each target, and to the run, counted where it happens
timeline              rare events, and single calls while a profile is made
figures               the ledgers as plain dicts, with sums: the JSON report
children              the figures of child processes, too
words                 figures as people read them; columns and groups that the views share
advice                how the user does what a report advises
summary               the summary line, and the heading of a report
brief                 what matters most, in about fifteen lines
text, markdown, html  the whole report as text, as Markdown, and in a notebook
reporting             `accel.report`
steps                 the steps of a run, and where the time of each went
drawing               the charts of a profile
profiling             the page of a profile
last                  the report of the last run, kept on disk
"""
