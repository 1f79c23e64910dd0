"""`tf.lookup`: tables from keys to values, and what `tf.contrib.lookup` had besides."""

from __future__ import annotations

from .face import OWN, Line, face

NAMES: dict[str, Line] = {
    "DenseHashTable": (OWN, "engine:DenseHashTable"),
    "FastHashSpec": "engine:FastHashSpec",
    "HasherSpec": "engine:HasherSpec",
    "IdTableWithHashBuckets": (OWN, "engine:IdTableWithHashBuckets"),
    "KeyValueTensorInitializer": ".tables:KeyValueTensorInitializer",
    "MutableHashTable": (OWN, "engine:MutableHashTable"),
    "StaticHashTable": ".tables:StaticHashTable",
    "StaticVocabularyTable": (OWN, "engine:StaticVocabularyTable"),
    "StrongHashSpec": "engine:StrongHashSpec",
    "TextFileIdTableInitializer": (OWN, "engine:TextFileIdTableInitializer"),
    "TextFileIndex": ".tables:TextFileIndex",
    "TextFileInitializer": ".tables:TextFileInitializer",
    "TextFileStringTableInitializer": (OWN, "engine:TextFileStringTableInitializer"),
    "index_table_from_file": (OWN, "engine:index_table_from_file"),
    "index_table_from_tensor": (OWN, "engine:index_table_from_tensor"),
    "index_to_string_table_from_file": (OWN, "engine:index_to_string_table_from_file"),
    "index_to_string_table_from_tensor": (OWN, "engine:index_to_string_table_from_tensor"),
}

__getattr__, __dir__ = face(__name__, NAMES, itself={"experimental"})
