"""The loop over rounds, and the four strategies.

Each strategy is one round of an algorithm of the paper (Joly, Wehenkel, Geurts): residuals of all
outputs at the current raw predictions, a weak model fitted to some projection of them, leaves and
steps from the full residuals, and the update. What is of order rows × features or rows × outputs
happens in the core.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.data.categories import Categories
from manyboost.data.weights import Weights
from manyboost.training.callbacks import RoundState, Watchers
from manyboost.training.checkpoints import Recorder, State
from manyboost.training.constraints import Constraints, Monotonic
from manyboost.training.learners import (
    ForeignEnsemble,
    ForeignLearner,
    Leaves,
    Predictions,
    TreeLearner,
    WeakModel,
    scaled_columns,
)
from manyboost.training.objectives import BuiltinObjective, Facts, Objective, Outputs, Update
from manyboost.training.projections import Projection, draw
from manyboost.training.scoring import Scorer
from manyboost.training.steps import Direction, minimise_along, softmax_step
from manyboost.training.stopping import BestRound, BestRoundPerOutput, Unwatched

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]


@dataclass(frozen=True)
class Block:
    """Neighbouring outputs that share a loss (None: all), and how their steps are found."""

    outputs: Outputs
    facts: Facts
    step: str
    l2: float

    def within(self, width: int) -> slice:
        """The columns of these outputs in an array of all, ``width`` of them."""
        first, last = self.outputs if isinstance(self.outputs, tuple) else (0, width)
        return slice(first, last)


@dataclass(frozen=True)
class Settings:
    """Parameters of training, resolved: no "auto" is left."""

    strategy: str
    projection: str | Projection
    n_components: int
    blocks: tuple[Block, ...]
    learning_rate: float
    max_iter: int
    subsample: float
    max_time: float | None
    per_output_stopping: bool
    n_iter_no_change: int
    tol: float
    seed: int
    monotonic: Monotonic | None = None


@dataclass
class Progress:
    """What training leaves behind besides the weak models; continued by a warm start.

    Scores are negative mean losses, entry 0 that of the baseline. Importances are gains
    (n_features, n_outputs).
    """

    model: _core.Ensemble | ForeignEnsemble
    importances: F64 | None
    train_score: list[float] = field(default_factory=list)
    validation_score: list[float] = field(default_factory=list)
    """What decides on early stopping."""
    validation_scores: dict[str, list[float]] = field(default_factory=dict)
    """All that was asked for, by name."""
    validation_per_output: list[F64] = field(default_factory=list)
    """Negative mean losses (n_outputs,), unless the outputs share one; NaN of unobserved ones."""
    train_per_output: list[F64] = field(default_factory=list)
    """The same of the training rows; kept if outputs are stopped one by one."""
    shares: tuple[F64, F64] | None = None
    """Shares (n_outputs,) of the outputs in the mean loss of training and validation rows."""
    steps: list[F64] = field(default_factory=list)
    """Steps of each round, unless the model itself keeps them (scaled trees) or has none."""
    mean_importances: F64 | None = None
    """Shares of the features (n_features,), where those by output were left out of a file."""
    categories: Categories = field(default_factory=lambda: Categories(0, {}))
    constraints: Constraints = field(default_factory=Constraints)

    @property
    def n_rounds(self) -> int:
        """Completed rounds."""
        return max(0, len(self.train_score) - 1)

    def truncate(self, n_rounds: int) -> None:
        """Forget the rounds after the first ``n_rounds``."""
        self.model.truncate(n_rounds)
        curves: list[list[Any]] = [self.train_score, self.validation_score]
        curves += [*self.validation_scores.values(), self.validation_per_output]
        for curve in [*curves, self.train_per_output]:
            del curve[n_rounds + 1 :]
        del self.steps[n_rounds:]

    def keep_best(self, rounds: NDArray[np.intp]) -> None:
        """Take back what each output got after its first ``rounds`` (n_outputs,).

        Scores are then those of the model that is left.
        """
        self.model.keep(rounds.astype(np.uint64))
        for m, steps in enumerate(self.steps):
            self.steps[m] = np.where(m < rounds, steps, 0.0)
        assert self.shares is not None
        per_output = self.train_per_output, self.validation_per_output
        scores = self.train_score, self.validation_score
        for curves, score, share in zip(per_output, scores, self.shares, strict=True):
            for m in range(1, len(curves)):
                curves[m] = np.where(m <= rounds, curves[m], curves[m - 1])
                score[m] = math.fsum((share * curves[m]).tolist()) / math.fsum(share.tolist())
        if "loss" in self.validation_scores:
            self.validation_scores["loss"] = list(self.validation_score)


@dataclass
class Validation:
    """Rows that are only scored; the first of the scorers decides on early stopping."""

    objective: Objective
    data: Any
    raw: F32
    scorers: list[Scorer]

    def score(self, progress: Progress) -> None:
        """Append the scores of the present round."""
        loss, per_output = self.objective.losses(self.raw)
        whole = len(progress.validation_per_output) == len(progress.validation_score)
        if per_output is not None and whole:
            progress.validation_per_output.append(-per_output)
        for scorer in self.scorers:
            score = -loss if scorer.measure is None else scorer.measure()
            progress.validation_scores.setdefault(scorer.name, []).append(score)
        progress.validation_score.append(progress.validation_scores[self.scorers[0].name][-1])


def auto_step(facts: Facts) -> str:
    """Step for ``step="auto"``, from the measurements in ARCHITECTURE.md.

    Newton leaves need no search, win for log loss with rare labels and for absolute error, and are
    close elsewhere; Huber's curvature is 0 beyond δ, where a Newton step can overshoot.
    """
    if facts.kernel == "huber" or (facts.kernel == "custom" and not facts.curved):
        return "line_search"
    return "newton"


class Boosting:
    """One fit: the state that rounds work on, and the strategies that make a round.

    Parameters
    ----------
    settings : Settings
    objective : Objective
        The loss bound to the training rows.
    learner : TreeLearner or ForeignLearner
    progress : Progress
        Empty, or what an earlier fit left.
    state : (n_rows, n_outputs)
        The objective's blank state, with the rounds so far added.
    row_numbers : (n_rows,)
        Numbers of the rows in the user's data, which random draws go by.
    importance : (n_outputs,) or None
        The part of ``split_scale`` that is not due to the scales of the outputs.
    split_scale : (n_outputs,) or None
        What residuals are multiplied by when trees are grown.
    validation : Validation or None
    watchers : Watchers
        Whom to tell of each round.
    recorder : Recorder or None
        Keeps checkpoints, and has the state to go on from if it found one.
    """

    def __init__(
        self,
        settings: Settings,
        objective: Objective,
        learner: TreeLearner | ForeignLearner,
        progress: Progress,
        state: F32,
        row_numbers: NDArray[np.uint64],
        split_scale: F64 | None,
        importance: F64 | None,
        validation: Validation | None,
        watchers: Watchers,
        pool: _core.Pool,
        recorder: Recorder | None = None,
    ) -> None:
        self.settings = settings
        self.objective = objective
        self.learner = learner
        self.progress = progress
        self.raw, self.residuals = objective.settled(state)
        self.row_numbers = row_numbers
        # (The reciprocal of the smallest scales is beyond single precision.)
        limited = None if split_scale is None else np.minimum(split_scale, 1e36)
        self.split_scale = None if limited is None else limited.astype(np.float32)
        self.importance = None if importance is None else importance.astype(np.float32)
        self.validation = validation
        self.watchers = watchers
        self.pool = pool
        self.recorder = recorder
        self.n_rows, self.n_outputs = state.shape
        self.phi: F32 | None = None
        self.z = self.residuals
        self.omega: F32 | None = None
        self.update: Update | None = None
        self.pending: list[tuple[int, _core.Tree, F64, F64, Outputs]] = []
        # Gains of all rounds, where importances are those up to the best.
        self.gains: F64 | None = None
        if validation is not None and progress.importances is not None:
            self.gains = progress.importances.copy()
        self.step_sizes: F64 | None = None
        self.stopping = Unwatched(0)
        # Complete rounds, and how many of them to keep, in all and by output: set at once.
        self.complete: tuple[int, int, NDArray[np.intp] | None] = (0, 0, None)
        # Whether early stopping or a callback has ended training.
        self.ended = False

    # ------------------------------------------------------------------ the loop

    def run(self) -> int:
        """Train; returns the number of rounds to keep.

        After an interrupt :meth:`settle` leaves the complete rounds in ``progress``.
        """
        settings, progress = self.settings, self.progress
        one_round = getattr(self, settings.strategy)
        is_watched = self._any_rank(bool(self.watchers))
        started = time.monotonic()
        more = progress.n_rounds < settings.max_iter
        if progress.train_score:
            self.stopping = self._make_stopping()
            more = self._restored() and more
        loss = self._advance(progress.n_rounds if more else None)
        if not progress.train_score:
            self._book_train_score(loss)
            if self.validation:
                self.validation.score(progress)
            self.stopping = self._make_stopping()
        self._complete()
        self._record(at_once=True)
        for m in range(progress.n_rounds, settings.max_iter if more else 0):
            if is_watched:
                self.step_sizes = None
                self.watchers.begin_round()
            one_round(m)
            is_last = self._is_last(m, started)
            loss = self._advance(None if is_last else m + 1)
            if not math.isfinite(loss):
                raise self._divergence(f"the training loss is {loss:g}")
            self._book_train_score(loss)
            self._complete()
            self.settle()
            if is_watched and self._any_rank(self.watchers.end_round(self._state(m, started))):
                is_last = self.ended = True
            self._record(at_once=is_last)
            if is_last:
                break
        return self.stopping.best

    def _any_rank(self, flag: bool) -> bool:
        """Whether a flag is true on any rank: what ends training ends it everywhere."""
        return bool(self.pool.totals(np.array([flag], np.int64))[0])

    def _restored(self) -> bool:
        """Go on from a checkpoint, if there is one; tell whether there are more rounds to come."""
        found = None if self.recorder is None else self.recorder.found
        if found is not None:
            self.stopping.restore(found.stopping)
            self.gains, self.ended = found.gains, found.ended
        return not self.ended

    def _record(self, *, at_once: bool) -> None:
        """Keep a checkpoint of the complete rounds, if it is time to."""
        recorder, progress = self.recorder, self.progress
        if recorder is not None and (at_once or recorder.is_due(progress.n_rounds)):
            recorder.write(State(progress, self.gains, self.stopping.state(), self.ended))

    @property
    def best(self) -> int:
        """Rounds to keep if training ended now."""
        return self.complete[1]

    @property
    def best_per_output(self) -> NDArray[np.intp] | None:
        """Rounds to keep of each output, if they are stopped one by one."""
        return self.complete[2]

    def _complete(self) -> None:
        """Count the present rounds as complete."""
        self.complete = self.progress.n_rounds, self.stopping.best, self.stopping.per_output

    def _make_stopping(self) -> Unwatched:
        settings, progress = self.settings, self.progress
        if self.validation is None:
            return Unwatched(progress.n_rounds)
        limits = settings.n_iter_no_change, settings.tol
        if settings.per_output_stopping:
            return BestRoundPerOutput(progress.validation_per_output, *limits)
        return BestRound(progress.validation_score, *limits)

    def _is_last(self, m: int, started: float) -> bool:
        """Score round ``m`` and tell whether training ends with it."""
        settings = self.settings
        if self.validation:
            self.validation.score(self.progress)
        self.ended = self.stopping.look(m + 1)
        if self.ended:
            return True
        out_of_time = settings.max_time is not None and self._any_rank(
            time.monotonic() - started >= settings.max_time
        )
        return out_of_time or m + 1 == settings.max_iter

    def _book_train_score(self, loss: float) -> None:
        if self.settings.per_output_stopping:
            per_output = self.objective.losses(self.raw)[1]
            assert per_output is not None
            self.progress.train_per_output.append(-per_output)
        self.progress.train_score.append(-loss)

    def _state(self, m: int, started: float) -> RoundState:
        """What is told of round ``m``."""
        progress, steps = self.progress, self.step_sizes
        if steps is not None:
            steps = steps.copy()
            steps.flags.writeable = False
        return RoundState(
            round=m + 1,
            n_iter=self.best,
            max_iter=self.settings.max_iter,
            elapsed=time.monotonic() - started,
            train_score=progress.train_score[-1],
            validation_score=progress.validation_score[-1] if self.validation else None,
            step_sizes=steps,
        )

    def _advance(self, m: int | None) -> float:
        """Carry out the update of the last round; residuals and split gradients for round ``m``.

        One pass over all cells; returns the mean loss. None: there is no other round.
        """
        update, self.update = self.update, None
        projects = self.settings.strategy in ("project", "relabel")
        self.phi = self._draw(m) if projects and m is not None else None
        phi = self.phi
        shared = self.settings.strategy != "independent"
        by_cell, growing = self.objective.weights.by_cell, self._growing_outputs()
        made = by_cell or self.split_scale is not None or growing is not None
        if phi is None and m is not None and shared and made:
            phi = np.eye(self.n_outputs, dtype=np.float32)
            if growing is not None and isinstance(self.learner, TreeLearner):
                phi = phi[growing]
            elif growing is not None:
                # Predictions of foreign learners are added as they are: a column for each output.
                phi[~growing] = 0
        if phi is None:
            self.z = self.residuals
            return self.objective.advance(self.raw, self.residuals, update)
        if self.z is self.residuals or self.z.shape[1] != len(phi):
            self.z = np.empty((self.n_rows, len(phi)), np.float32)
            self.omega = np.empty_like(self.z) if by_cell else None
        return self.objective.advance(
            self.raw,
            self.residuals,
            update,
            self._scaled(phi),
            self.z,
            self.omega,
            self._shares(phi) if by_cell else None,
        )

    def settle(self) -> None:
        """Count the gains of the complete rounds, and those up to the best as importances.

        An interrupt may come at any time: each call of the core does all of its work or none, and
        can be repeated.
        """
        importances, (n_rounds, best, per_output) = self.progress.importances, self.complete
        if importances is None:
            return
        gains = importances if self.gains is None else self.gains
        _core.book_gains(self.pending, n_rounds, gains)
        if self.gains is not None:
            kept = best if per_output is None else per_output
            np.copyto(importances, gains, where=np.equal(kept, n_rounds))

    # ------------------------------------------------------------------ the four strategies
    #
    # A round starts from the residuals r (n_rows, n_outputs) and, for the strategies that share a
    # tree, from the split gradients z: r itself for multioutput, φ r for project and relabel. Where
    # cells are weighted, z = φ (w r), with weights ω = φ² w / Σ φ² for each component.

    def independent(self, m: int) -> None:
        """Algorithm 1 for each output in turn."""
        joint = self.objective.is_softmax and self.settings.blocks[0].step == "line_search"
        grown: list[tuple[WeakModel, F64, F64 | None]] = []
        still = self._still_outputs()
        for j in range(self.n_outputs):
            if j in still:
                grown.append(still[j])
                continue
            rows, weights = self._sample(m, j)
            z = np.ascontiguousarray(self.residuals[:, j : j + 1])
            signs, weight = self._growth_signs(m, j), self.objective.weights.of_output(j)
            weak = self.learner.fit(z, weight, rows, m, j, signs)
            values, rho = self._label(weak, weights, j, search=not joint)
            grown.append((weak, values, rho))
        if joint:
            # The classes share one loss: their steps are found together.
            columns = [np.asarray(_direction(w, v).of_rows()) for w, v, _ in grown]
            direction = Direction(None, np.ascontiguousarray(np.hstack(columns)))
            rho = self._line_search(self.settings.blocks[0], direction, self._sample(m, 0)[1])
            grown = [(w, v, rho[j : j + 1]) for j, (w, v, _) in enumerate(grown)]
        self._open_entry()
        for j, (weak, values, rho) in enumerate(grown):
            if j in still:
                self._add_nothing(weak, values)
            else:
                self._add(weak, values, rho, j)
        if any(rho is not None for _, _, rho in grown):
            self._book_steps(np.concatenate([_step_or_one(rho, 1) for _, _, rho in grown]))

    def multioutput(self, m: int) -> None:
        """Algorithm 2: one tree on all outputs, one value for each output in its leaves."""
        rows, weights = self._sample(m)
        weak = self.learner.fit(self.z, self._split_weight(), rows, m, 0)
        values, rho = self._label(weak, weights)
        self._add_round(weak, values, rho)

    def project(self, m: int) -> None:
        """Algorithm 3: one tree on one random projection, one step for each output."""
        rows, weights = self._sample(m)
        signs = self._growth_signs(m)
        weak = self.learner.fit(self.z, self._split_weight(), rows, m, 0, signs)
        self._open_entry()
        values, rho = self._fit_outputs(weak, weights, signs)
        self._add_scaled(weak, values, rho)

    def relabel(self, m: int) -> None:
        """Algorithm 4: as Algorithm 2, but the tree is grown on q random projections.

        Its leaves are labelled for all outputs from the residuals before projection.
        """
        self.multioutput(m)

    # ------------------------------------------------------------------ what rounds are made of

    def _sample(self, m: int, output: int | None = None) -> tuple[U32 | None, Weights]:
        """Rows to fit to (None: all), and weights that are zero elsewhere.

        Those of one output are drawn from the rows in which it is observed.
        """
        weights, observed = self.objective.weights, self.objective.rows_of(output)
        if self.settings.subsample == 1.0:
            return observed, weights
        numbers = self.row_numbers if observed is None else self.row_numbers[observed]
        total = self.pool.totals(np.array([len(numbers)]))[0]
        count = max(1, int(self.settings.subsample * int(total)))
        rows = _core.sample_rows(self.pool, numbers, count, self.settings.seed, m, output or 0)
        rows = rows if observed is None else observed[rows]
        return rows, weights.within(rows, self.n_rows)

    def _split_weight(self) -> F32 | None:
        """Weights of the split gradients of a shared tree: by component if cells are weighted."""
        weights = self.objective.weights
        return self.omega if weights.by_cell else weights.rows

    @property
    def split_outputs(self) -> NDArray[np.bool_] | None:
        """Which outputs take part in growing trees; None: all."""
        if self.split_scale is None or self.split_scale.all():
            return None
        return np.asarray(self.split_scale > 0)

    def _growing_outputs(self) -> NDArray[np.bool_] | None:
        """Which outputs trees are grown for now, None: all; those that take part and go on."""
        taking_part, frozen = self.split_outputs, self.stopping.frozen
        if frozen is None:
            return taking_part
        growing = ~frozen if taking_part is None else taking_part & ~frozen
        # What goes on takes no part: it needs trees nevertheless.
        return growing if growing.any() else taking_part

    def _draw(self, m: int) -> F32 | None:
        """Projection of round ``m`` (n_components, n_outputs); None stands for the identity."""
        settings = self.settings
        if settings.projection == "identity":
            return None
        phi = draw(
            settings.projection,
            settings.n_components,
            self.n_outputs,
            sums_to_zero=self.objective.is_softmax,
            seed=settings.seed,
            round_=m,
            outputs=self._growing_outputs(),
        )
        signs = self._growth_signs(m) if settings.strategy == "project" else None
        if signs is not None and settings.monotonic is not None:
            phi = phi * np.float32(settings.monotonic.sense(phi, signs))
        return phi

    def _growth_signs(self, m: int, output: int | None = None) -> NDArray[np.int8] | None:
        """Monotonic constraints (n_features,) under which a tree is grown.

        The components of a shared tree are no outputs: it is grown freely, and its leaves are
        brought into order.
        """
        monotonic = self.settings.monotonic
        if monotonic is None or self.settings.strategy in ("multioutput", "relabel"):
            return None
        return monotonic.reference(m) if output is None else monotonic.signs[output]

    def _ordered(self, weak: Leaves, values: F64, weights: F64, output: Outputs) -> F64:
        """Leaf values within the monotonic constraints; ``weights`` say how much each matters."""
        monotonic = self.settings.monotonic
        if monotonic is None:
            return values
        return _in_order(weak, monotonic.of(output), weights, values)

    def _scaled(self, phi: F32) -> F32:
        """φ for residuals multiplied by the scale of their output."""
        return phi if self.split_scale is None else phi * self.split_scale

    def _shares(self, phi: F32) -> F32:
        """φ as the weights of components go by it: for outputs that are on one scale."""
        return phi if self.importance is None else phi * self.importance

    def _blocks(self, output: int | None) -> Iterator[Block]:
        """Outputs that share a loss, of all or of one."""
        for block in self.settings.blocks:
            if output is None:
                yield block
            elif block.outputs is None:
                yield replace(block, outputs=output)
            else:
                columns = block.within(self.n_outputs)
                if columns.start <= output < columns.stop:
                    yield replace(block, outputs=output)

    def _label(
        self,
        weak: WeakModel,
        weights: Weights,
        output: int | None = None,
        *,
        search: bool = True,
    ) -> tuple[F64, F64 | None]:
        """Leaf values (or predictions) g of a weak model for all outputs or one, and steps ρ.

        ρ is None where the leaf values are final (Newton). ``search=False`` leaves the search for
        ρ to the caller.
        """
        if isinstance(weak, Predictions):
            values, rho = weak.values.astype(np.float64), self._dense_steps(weak, weights, output)
            return values, rho if output is not None else self._still(rho)
        blocks = self.settings.blocks if output is None else tuple(self._blocks(output))
        if len(blocks) == 1:
            values, steps = self._label_block(blocks[0], weak, weights, search=search)
        else:
            parts = [self._label_block(block, weak, weights, search=search) for block in blocks]
            values = np.hstack([values for values, _ in parts])
            steps = None
            if any(rho is not None for _, rho in parts):
                steps = np.concatenate([_step_or_one(rho, g.shape[1]) for g, rho in parts])
        if output is not None or self.stopping.frozen is None:
            return values, steps
        return self._still(values), None if steps is None else self._still(steps)

    def _still(self, columns: F64) -> F64:
        """Return values or steps of all outputs, zero for those that are frozen."""
        frozen = self.stopping.frozen
        return columns if frozen is None else np.where(frozen, 0.0, columns)

    def _label_block(
        self, block: Block, weak: Leaves, weights: Weights, *, search: bool
    ) -> tuple[F64, F64 | None]:
        """Leaf values and steps for outputs that share a loss."""
        newton, output = block.step == "newton", block.outputs
        leaf_weights = self._leaf_weights(weak, weights, output)
        sums, curvatures = self.objective.leaf_sums(
            weak.leaf_of_row, leaf_weights, self.residuals, weights, output
        )
        self._remember_gains(weak, sums, leaf_weights, output)
        facts = block.facts
        if newton and not facts.curved:
            best = self.objective.leaf_quantiles(
                weak.leaf_of_row, weak.n_leaves, self.raw, weights, output
            )
            return self._ordered(weak, best, leaf_weights, output), None
        if newton:
            assert curvatures is not None
            damped = curvatures + block.l2 if block.l2 else curvatures
            no_leaf_is_empty = isinstance(self.learner, TreeLearner) and not weights.by_cell
            if facts.quadratic and no_leaf_is_empty:
                return self._ordered(weak, sums / damped, damped, output), None
            mean = _divide(sums, leaf_weights)
            values = np.where(damped > 0, _divide(sums, damped), mean)
            matter = np.where(damped > 0, damped, leaf_weights)
            return self._ordered(weak, values, matter, output), None
        mean = self._ordered(weak, _divide(sums, leaf_weights), leaf_weights, output)
        if not search:
            return mean, None
        direction = Direction(weak.leaf_of_row, mean.astype(np.float32))
        rho = self._line_search(block, direction, weights, (sums, curvatures))
        monotonic = self.settings.monotonic
        return mean, rho if monotonic is None else monotonic.forward(rho, output)

    def _leaf_weights(self, weak: Leaves, weights: Weights, output: Outputs = None) -> F64:
        """Σ w over the rows of each leaf, (n_leaves, 1); by output if cells are weighted."""
        if not weights.by_cell:
            return weak.leaf_weights[:, None]
        return self.objective.leaf_weights(weak.leaf_of_row, weak.n_leaves, weights, output)

    def _fit_outputs(
        self, weak: WeakModel, weights: Weights, signs: NDArray[np.int8] | None
    ) -> tuple[F64, F64]:
        """Scalar leaf values (n_leaves, 1) of a tree grown on φ r, and one step per output.

        ``signs`` (n_features,) are the monotonic constraints that the tree was grown under.
        """
        if isinstance(weak, Predictions):
            rho = self._dense_steps(weak, weights, None)
            return weak.values.astype(np.float64), self._still(rho)
        blocks = self.settings.blocks
        leaf_weights = self._leaf_weights(weak, weights)
        parts = []
        for block in blocks:
            columns = block.within(self.n_outputs) if weights.by_cell else slice(None)
            parts.append(
                self.objective.leaf_sums(
                    weak.leaf_of_row,
                    leaf_weights[:, columns],
                    self.residuals,
                    weights,
                    block.outputs,
                )
            )
        sums = parts[0][0] if len(parts) == 1 else np.hstack([sums for sums, _ in parts])
        self._remember_gains(weak, sums, leaf_weights)
        # The mean of φ r in a leaf is φ times the mean of r.
        row = np.ones((1, 1), np.float32) if self.phi is None else self._scaled(self.phi)
        # (Not a matrix product: its last bits differ between machines.)
        total = leaf_weights
        if weights.by_cell:
            shares = (row if self.phi is None else self._shares(self.phi)).astype(np.float64) ** 2
            total = (leaf_weights * shares).sum(axis=1, keepdims=True) / shares.sum()
        g = _divide((sums * row).sum(axis=1, keepdims=True), total)
        if signs is not None:
            g = _in_order(weak, signs[None, :], total, g)
        direction = Direction(weak.leaf_of_row, g.astype(np.float32))
        steps = [
            self._steps_along(block, direction, g, block_sums, weights)
            for block, block_sums in zip(blocks, parts, strict=True)
        ]
        rho = steps[0] if len(steps) == 1 else np.concatenate(steps)
        monotonic = self.settings.monotonic
        if signs is not None and monotonic is not None:
            rho = monotonic.along(rho, signs, weak.tree.ordered_features())
        return g, self._still(rho)

    def _steps_along(
        self,
        block: Block,
        direction: Direction,
        g: F64,
        sums: tuple[F64, F64 | None],
        weights: Weights,
    ) -> F64:
        """Steps of a block along scalar leaf values g (n_leaves, 1), from its leaf sums."""
        residuals, curvatures = sums
        if block.step == "newton" and block.facts.curved:
            assert curvatures is not None
            slope = (residuals * g).sum(axis=0)
            curvature = (curvatures * g**2).sum(axis=0) + block.l2 * (g**2).mean()
            return _divide(slope, curvature)
        return self._line_search(block, direction, weights, sums)

    def _line_search(
        self,
        block: Block,
        direction: Direction,
        weights: Weights,
        sums: tuple[F64, F64 | None] | None = None,
    ) -> F64:
        """Steps ρ that minimise the loss of each output of a block along a direction.

        ``sums`` are the leaf sums of residuals and curvatures, if known: they give the derivatives
        at zero, and so the whole answer for squared error.
        """
        objective, raw = self.objective, self.raw
        facts, output = block.facts, block.outputs
        if objective.is_softmax:
            assert isinstance(objective, BuiltinObjective)
            return softmax_step(objective, raw, weights, direction)
        if facts.kernel in ("absolute_error", "quantile"):
            return objective.quantile_steps(raw, weights, direction, output)

        def evaluate(rho: F64, active: NDArray[np.bool_] | None = None) -> tuple[F64, F64 | None]:
            return objective.derivatives(raw, weights, direction, rho, output, active)

        columns = block.within(self.n_outputs)
        n_steps = 1 if isinstance(output, int) else columns.stop - columns.start
        curvature: F64 | None
        if sums is None:
            slope, curvature = evaluate(np.zeros(n_steps))
        else:
            g = direction.values.astype(np.float64)
            slope = -(sums[0] * g).sum(axis=0)
            if self.stopping.frozen is not None and not isinstance(output, int):
                # Nothing to search for.
                slope = np.where(self.stopping.frozen[columns], 0.0, slope)
            curvature = None if sums[1] is None else (sums[1] * g**2).sum(axis=0)
        if facts.quadratic:
            assert curvature is not None
            return _divide(-slope, curvature)
        reach = np.broadcast_to(direction.reach(self.pool), n_steps)
        return minimise_along(evaluate, slope, curvature, reach, bounded=facts.bounded)

    def _dense_steps(self, weak: Predictions, weights: Weights, output: int | None) -> F64:
        """Steps along the predictions of a foreign weak model."""
        steps = []
        for block in self._blocks(output):
            values = weak.values
            if values.shape[1] > 1:
                values = np.ascontiguousarray(values[:, block.within(self.n_outputs)])
            steps.append(self._dense_step(block, Direction(None, values), weights))
        return steps[0] if len(steps) == 1 else np.concatenate(steps)

    def _dense_step(self, block: Block, direction: Direction, weights: Weights) -> F64:
        objective, output = self.objective, block.outputs
        if block.step != "newton" or not block.facts.curved:
            return self._line_search(block, direction, weights)
        if objective.is_softmax:
            return self._dense_softmax_newton(block, direction, weights)
        columns = block.within(self.n_outputs)
        zero = np.zeros(1 if isinstance(output, int) else columns.stop - columns.start)
        slope, curvature = objective.derivatives(self.raw, weights, direction, zero, output)
        assert curvature is not None
        mean_square = (direction.values.astype(np.float64) ** 2).mean(axis=0)
        return _divide(-slope, curvature + block.l2 * mean_square)

    def _dense_softmax_newton(self, block: Block, direction: Direction, weights: Weights) -> F64:
        """Diagonal Newton steps for softmax, from the residuals at hand."""
        output = block.outputs
        assert not isinstance(output, tuple)
        r = self.residuals if output is None else self.residuals[:, output : output + 1]
        r = np.ascontiguousarray(r)
        h = np.abs(r) * (1 - np.abs(r))
        parts = (weights, None, direction.values)
        slope = _core.dots(self.pool, r, *parts, False)
        curvature = _core.dots(self.pool, h, *parts, True)
        mean_square = (direction.values.astype(np.float64) ** 2).mean(axis=0)
        return _divide(slope, curvature + block.l2 * mean_square)

    def _remember_gains(
        self, weak: Leaves, sums: F64, leaf_weights: F64, output: Outputs = None
    ) -> None:
        if self.progress.importances is not None:
            self.pending.append((self.complete[0], weak.tree, sums, leaf_weights, output))

    # ------------------------------------------------------------------ updates

    def _add_round(self, weak: WeakModel, values: F64, rho: F64 | None) -> None:
        """Add a weak model that serves all outputs, and book its steps."""
        self._open_entry()
        self._add(weak, values, rho)
        if rho is not None:
            self._book_steps(rho)

    def _book_steps(self, rho: F64) -> None:
        self.step_sizes = rho
        self.progress.steps.append(rho)

    def _still_outputs(self) -> dict[int, tuple[WeakModel, F64, F64 | None]]:
        """What ``independent`` adds to frozen outputs: trees of one leaf, worth nothing."""
        if self.stopping.frozen is None:
            return {}
        tree = _core.Tree.leaf()
        weak = Leaves(tree.leaf_of_row, tree.leaf_weights, tree)
        nothing = weak, np.zeros((1, 1)), np.zeros(1) if self.progress.steps else None
        return dict.fromkeys(np.flatnonzero(self.stopping.frozen).tolist(), nothing)

    def _add_nothing(self, weak: WeakModel, values: F64) -> None:
        model = self.progress.model
        if not isinstance(model, ForeignEnsemble):
            assert isinstance(weak, Leaves)
            model.push(weak.tree, values.astype(np.float32))

    def _open_entry(self) -> None:
        model = self.progress.model
        if isinstance(model, ForeignEnsemble):
            model.truncate(self.progress.n_rounds)
            model.rounds.append([])

    def _add(
        self, weak: WeakModel, values: F64, rho: F64 | None, output: int | None = None
    ) -> None:
        """Move f by μ ρ ⊙ g, for all outputs or for one."""
        rate = self.settings.learning_rate
        if isinstance(weak, Predictions):
            assert rho is not None
            self._add_foreign(weak, self._single(rate * rho), output)
            return
        step = rate if rho is None else rate * rho
        leaf_values = self._single(step * values)
        model = self.progress.model
        if isinstance(model, ForeignEnsemble):
            model.rounds[-1].append((weak.tree, slice(None), leaf_values, None))
        else:
            model.push(weak.tree, leaf_values)
        self._move(weak, leaf_values, None, output)

    def _add_scaled(self, weak: WeakModel, values: F64, rho: F64) -> None:
        """Move f by μ ρ g, one g for all outputs; ρ is kept once per tree, not per leaf."""
        rate = self.settings.learning_rate
        if isinstance(weak, Predictions):
            self._add_foreign(weak, self._single(rate * rho), None)
            self._book_steps(rho)
            return
        self.step_sizes = rho
        assert not isinstance(self.progress.model, ForeignEnsemble)
        leaf_values = self._single(rate * values)
        steps = self._single(rho)
        self.progress.model.push(weak.tree, leaf_values, steps)
        self._move(weak, leaf_values, steps)

    def _single(self, values: F64) -> F32:
        """Values that raw predictions are moved by, in single precision."""
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(values, dtype=np.float32)
        if not np.isfinite(single).all():
            raise self._divergence("raw predictions leave the range of single precision")
        return single

    def _divergence(self, how: str) -> ValueError:
        return ValueError(
            f"Training diverged in round {self.progress.n_rounds + 1}, in which {how}; use a "
            f"smaller learning_rate than {self.settings.learning_rate:g}, or stop earlier."
        )

    def _add_foreign(self, weak: Predictions, steps: F32, output: int | None) -> None:
        model = self.progress.model
        assert isinstance(model, ForeignEnsemble)
        outputs = slice(None) if output is None else slice(output, output + 1)
        model.rounds[-1].append((weak.estimator, outputs, None, steps))
        self.raw[:, outputs] += weak.values * steps
        if self.validation:
            scaled = scaled_columns(weak.estimator, self.validation.data, steps)
            self.validation.raw[:, outputs] += scaled

    def _move(
        self, weak: Leaves, values: F32, steps: F32 | None, output: int | None = None
    ) -> None:
        """Move raw predictions by leaf values; training rows wait for the next pass."""
        if output is None:
            self.update = (weak.leaf_of_row, values, steps)
        else:
            _core.add_leaves(self.pool, weak.leaf_of_row, values, steps, self.raw, output)
        if self.validation:
            leaf_of_row = self.learner.leaves_of(weak, self.validation.data)
            raw = self.validation.raw
            _core.add_leaves(self.pool, leaf_of_row, values, steps, raw, output)


def _direction(weak: WeakModel, values: F64) -> Direction:
    leaf_of_row = weak.leaf_of_row if isinstance(weak, Leaves) else None
    return Direction(leaf_of_row, values.astype(np.float32))


def _in_order(weak: Leaves, signs: NDArray[np.int8], weights: F64, values: F64) -> F64:
    """Leaf values in the order that constraints (n_outputs, n_features) ask for."""
    contiguous = np.ascontiguousarray
    return np.asarray(weak.tree.order_leaves(signs, contiguous(weights), contiguous(values)))


def _step_or_one(rho: F64 | None, width: int) -> F64:
    """Steps as numbers: leaf values that are final have a step of 1."""
    return np.ones(width) if rho is None else rho


def _divide(a: F64, b: F64) -> F64:
    """Return a / b, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)
