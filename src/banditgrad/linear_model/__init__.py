"""Linear models with scikit-learn's interface, trained with bandit sampling."""

from banditgrad.linear_model.classifier import BanditClassifier
from banditgrad.linear_model.cross_validation import BanditClassifierCV, BanditRegressorCV, ValidationPath
from banditgrad.linear_model.model_file import load_model, save_model
from banditgrad.linear_model.regressor import BanditRegressor

__all__ = [
    "BanditClassifier",
    "BanditClassifierCV",
    "BanditRegressor",
    "BanditRegressorCV",
    "ValidationPath",
    "load_model",
    "save_model",
]
