"""Snapshots loaded to answer for contexts: once a snapshot and process, within bounded memory.

models   featuriser and fold models
advisor  which pair next
routes   who wins where
shelf    keeps them, by board
"""
