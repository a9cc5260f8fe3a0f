"""A folder of models against MuJoCo."""

from mbcasadi.validation.agreement.corpus.corpus import check_corpus
from mbcasadi.validation.agreement.corpus.report import CorpusReport, CorpusRow

__all__ = ["CorpusReport", "CorpusRow", "check_corpus"]
