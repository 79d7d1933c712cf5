"""Outcome learners behind the core's protocols: LightGBM and scikit-learn live here."""

from app.learners.classifier.learner import LightGBMLearner
from app.learners.davidson.learner import DavidsonLearner
from app.learners.davidson.stack import Stack, stacked
from app.learners.featuriser import Featuriser
from app.learners.registry import learner, load_model

__all__ = ["DavidsonLearner", "Featuriser", "LightGBMLearner", "Stack", "learner", "load_model", "stacked"]
