#!/usr/bin/env bash
# Four libraries fit the same log of failures: one MTBF is 134 times too short, one 3.6 times too long, one 9% off.
#
# Versions   scipy==1.17.1, reliability==0.9.0, lifelines==0.30.3, surpyval==0.25
# Expected   Servers ran 2,160 hours and a few failed. With a constant rate the likelihood is greatest at the hours of all
#            by the failures, and fits that take survivors as censored find it; a Weibull fit is where the likelihood is
#            greatest as well. Programs agree, or one says that it found no optimum.
# Behaviour  scipy fits a start of life beside the mean (loc). Of 5 in 64 it takes the first failure for it, and of 12 in
#            512 it stops at 674 hours, after two of them failed: the likelihood is zero there, the mean is
#            680 hours, and nothing is raised; with floc=0 it is exact. reliability's exponential is 9% short for 64
#            servers, and its Weibull for 1,024 stops at 421,000 hours where the likelihood is lower than at the
#            116,000 of the others. A name of an optimizer that came to an end is all it shows; optimizer="nelder-mead"
#            finds the maximum. Checkpoints, spares and goodput follow the MTBF. lifelines and surpyval hold.
# Output seen
#   5 of 64: by hand 26,500 hours; scipy 24,100, floc=0 26,500; reliability 24,000; lifelines 26,500; surpyval 26,500
#   5 of 64, Weibull: reliability 29,700 (likelihood -55.91), lifelines 29,700 (-55.91), surpyval 29,700
#   12 of 512: by hand 91,200 hours; scipy 680, floc=0 91,200; reliability 91,200; lifelines 91,200; surpyval 91,200
#   12 of 512, Weibull: reliability 61,100 (likelihood -148.98), lifelines 61,100 (-148.98), surpyval 61,100
#   12 of 1024: by hand 183,000 hours; scipy 178,000, floc=0 183,000; reliability 183,000; lifelines 183,000; surpyval 183,000
#   12 of 1024, Weibull: reliability 422,000 (likelihood -157.75), lifelines 116,000 (-157.37), surpyval 116,000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    scipy==1.17.1 reliability==0.9.0 lifelines==0.30.3 surpyval==0.25 numpy==2.4.6 pandas==2.3.3 matplotlib==3.11.2
cat >"$folder/seen.py" <<'PYTHON'
import warnings

warnings.filterwarnings("ignore")
import lifelines
import numpy as np
import scipy.stats
import surpyval
from reliability.Fitters import Fit_Exponential_1P, Fit_Weibull_2P
from scipy.special import gamma

HOURS = 2160.0
FIVE = [200.0, 500.0, 900.0, 1300.0, 2000.0]
TWELVE = [60.0, 311.0, 674.0, 884.0, 914.0, 1106.0, 1162.0, 1187.0, 1628.0, 1788.0, 2049.0, 2053.0]
QUIET = {"show_probability_plot": False, "print_results": False}


def said(hours):
    return f"{float(f'{hours:.3g}'):,.0f}"


def mean(scale, shape):
    return said(scale * gamma(1 + 1 / shape))


for failures, servers in ((FIVE, 64), (TWELVE, 512), (TWELVE, 1024)):
    name = f"{len(failures)} of {servers}"
    survivors = [HOURS] * (servers - len(failures))
    times = np.array(failures + survivors)
    failed = np.array([True] * len(failures) + [False] * len(survivors))
    log = scipy.stats.CensoredData(uncensored=failures, right=survivors)
    free, fixed = (scipy.stats.expon(*scipy.stats.expon.fit(log, **own)).mean() for own in ({}, {"floc": 0}))
    one = Fit_Exponential_1P(failures=failures, right_censored=survivors, **QUIET)
    other = lifelines.ExponentialFitter().fit(times, failed)
    third = surpyval.Exponential.fit(times, c=(~failed).astype(int))
    print(
        f"{name}: by hand {said(times.sum() / len(failures))} hours; scipy {said(free)}, floc=0 {said(fixed)}; "
        f"reliability {said(1 / one.Lambda)}; lifelines {said(other.lambda_)}; surpyval {said(third.mean())}"
    )
    one = Fit_Weibull_2P(failures=failures, right_censored=survivors, **QUIET)
    other = lifelines.WeibullFitter().fit(times, failed)
    third = surpyval.Weibull.fit(times, c=(~failed).astype(int))
    print(
        f"{name}, Weibull: reliability {mean(one.alpha, one.beta)} (likelihood {one.loglik:.2f}), "
        f"lifelines {mean(other.lambda_, other.rho_)} ({other.log_likelihood_:.2f}), surpyval {said(third.mean())}"
    )
PYTHON
cd "$folder"
MPLBACKEND=Agg ./venv/bin/python seen.py 2>errors.txt >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
5 of 64: by hand 26,500 hours; scipy 24,100, floc=0 26,500; reliability 24,000; lifelines 26,500; surpyval 26,500
5 of 64, Weibull: reliability 29,700 (likelihood -55.91), lifelines 29,700 (-55.91), surpyval 29,700
12 of 512: by hand 91,200 hours; scipy 680, floc=0 91,200; reliability 91,200; lifelines 91,200; surpyval 91,200
12 of 512, Weibull: reliability 61,100 (likelihood -148.98), lifelines 61,100 (-148.98), surpyval 61,100
12 of 1024: by hand 183,000 hours; scipy 178,000, floc=0 183,000; reliability 183,000; lifelines 183,000; surpyval 183,000
12 of 1024, Weibull: reliability 422,000 (likelihood -157.75), lifelines 116,000 (-157.37), surpyval 116,000
SEEN
