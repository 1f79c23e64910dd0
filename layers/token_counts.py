"""How often tokens occur in data, and in how many of its documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class TokenCounts:
    """Counts of tokens.

    Args:
        by_document: whether documents are counted too.

    Attributes:
        tokens: how often each token occurs.
        documents: in how many documents it does.
        num_documents: how many documents there were.
    """

    def __init__(self, by_document: bool) -> None:
        self.by_document = by_document
        self.tokens: Counter[Any] = Counter()
        self.documents: Counter[Any] = Counter()
        self.num_documents = 0

    def update(self, rows: Array) -> None:
        """Count the tokens of documents, which stand along the first axis."""
        self.tokens.update(rows.ravel().tolist())
        if self.by_document:
            for row in rows:
                self.documents.update(set(row.ravel().tolist()))
            self.num_documents += len(rows)

    def most_frequent(self, excluded: Collection[Any], limit: int | None) -> list[Any]:
        """The tokens by falling frequency, those of one frequency in falling order."""
        found = [token for token in self.tokens if token not in excluded]
        found.sort(key=lambda token: (self.tokens[token], token), reverse=True)
        return found[:limit]

    def inverse_document_frequencies(self, tokens: Collection[Any]) -> Array:
        """ln(1 + documents / (1 + documents with the token)), for each token."""
        having = np.asarray([self.documents[token] for token in tokens], np.float64)
        return np.log1p(self.num_documents / (1.0 + having))
