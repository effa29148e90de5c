"""Generated text, wide and sparse: words by Zipf's law and by topic, in phrases that come again."""

import math

import numpy as np
import scipy.sparse as sp

from sets import data_set
from sets.real import signs

VOCABULARY, TOPICS = 20_000, 30
LONGEST, BUCKETS = 8, 2**18  # letters of a word, and columns that groups of letters are hashed to


def written(seed, n, length):
    """The words of all documents in a row, the document of each, and labels: the topics of every fifth, 2 % of them
    wrong."""
    rng = np.random.default_rng(seed)
    popular = 1.0 / (np.arange(TOPICS) + 2.0)
    topic = rng.choice(TOPICS, n, p=popular / popular.sum())
    lengths = np.maximum(2, np.exp(math.log(length) + 0.5 * rng.standard_normal(n))).astype(int)
    document, total = np.repeat(np.arange(n), lengths), int(lengths.sum())
    zipf = np.cumsum(1.0 / (np.arange(VOCABULARY) + 3.0))
    words = np.searchsorted(zipf / zipf[-1], rng.random(total))
    own = rng.random(total) < 0.35  # words of the topic: the same law for other words
    others = rng.permutation(VOCABULARY)
    words = np.where(own, others[(words + 613 * topic[document]) % VOCABULARY], words)
    follows = rng.integers(0, VOCABULARY, (VOCABULARY, 3))  # a word is often followed by one of three
    next_of = np.flatnonzero(rng.random(total) < 0.4)
    next_of = next_of[next_of > 0]
    words[next_of] = follows[words[next_of - 1], rng.integers(0, 3, next_of.size)]
    return words.astype(np.int64), document, signs((topic % 5 == 0) ^ (rng.random(n) < 0.02))


def counted(document, column, n):
    """How often each column was met in each document; columns that never were are left out."""
    met, column = np.unique(column, return_inverse=True)
    X = sp.csr_array(sp.coo_array((np.ones(column.size), (document, column)), shape=(n, met.size)))
    X.sum_duplicates()
    return X


@data_set("text", zoo=False)
def text_tfidf(n=15_000):
    """Words and pairs of words, in rows of length 1."""
    words, document, y = written(0, n, 14)
    first = np.flatnonzero(document[1:] == document[:-1])
    pairs = VOCABULARY * (1 + words[first]) + words[first + 1]
    X = counted(np.concatenate([document, document[first]]), np.concatenate([words, pairs]), n)
    X.data *= (np.log((1 + n) / (1 + np.bincount(X.indices))) + 1.0)[X.indices]
    return sp.csr_array(sp.diags_array(1.0 / np.sqrt((X * X).sum(axis=1))) @ X), y


@data_set("text", zoo=False)
def text_counts(n=8000):
    words, document, y = written(1, n, 30)
    return counted(document, words, n), y


@data_set("text", zoo=False)
def text_characters(n=8000):
    """Groups of two to five letters, hashed: 125 entries a row."""
    words, document, y = written(2, n, 10)
    rng = np.random.default_rng(5)
    frequent = 1.0 / (np.arange(26) + 3.0)
    letters = rng.choice(26, (VOCABULARY, LONGEST + 1), p=frequent / frequent.sum())
    lengths = rng.integers(3, LONGEST + 1, VOCABULARY)
    groups = []
    for size in (2, 3, 4, 5):
        for begin in range(LONGEST - size + 1):
            whose, code = np.flatnonzero(begin + size <= lengths), np.uint64(size)
            for k in range(begin, begin + size):
                code = code * np.uint64(1_000_003) + letters[whose, k].astype(np.uint64) + np.uint64(1)
            hashed = (code * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(46)).astype(np.int64)
            groups.append(sp.coo_array((np.ones(whose.size), (whose, hashed)), shape=(VOCABULARY, BUCKETS)).tocsr())
    uses = sp.csr_array(sp.coo_array((np.ones(words.size), (document, words)), shape=(n, VOCABULARY)))
    return sp.csr_array(uses @ sum(groups[1:], groups[0])), y
