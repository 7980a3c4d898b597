"""Containers from outside: lists, deques, dicts and sets, whose elements are inputs by path, and whose changes outputs.

What a call reads of a container is guarded, and no more than that: one that only grows has another length in each call,
and its length is no guard.
"""
