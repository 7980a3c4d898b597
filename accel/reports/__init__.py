"""Reports of a run, made from the figures in `accel.platform.ledger`.

figures               the ledgers as plain dicts, with sums: the JSON report
children              the figures of child processes
layout                text within 100 columns, and tables
words                 figures as people read them; columns and groups that the views share
advice                the commands by which the user follows a report's advice
summary               the summary line, and the heading of a report
brief                 the most important figures, in about fifteen lines
text, markdown, html  the whole report as text, as Markdown, and in a notebook
reporting             `accel.report`
drawing               the charts of a profile, and the steps that they show
profiling             the page of a profile
last                  the report of the last run, kept on disk
"""
