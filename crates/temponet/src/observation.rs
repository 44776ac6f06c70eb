//! The ready jobs of a decision as rows of the network's input.
//!
//! Jobs with equal tokens share a row that carries their count. That keeps the network's input small, and the attention
//! bias makes the result the same as with a row per job.

use temponet_infer::{Rows, Sparsity};
use temponet_task::{Job, JobId, System, SystemView, Time};

use crate::advice::{Advice, JobAdvice};
use crate::feature::RowKind;
use crate::firm::FirmHistory;
use crate::number::Number;
use crate::outlook::{Known, Outlook};
use crate::prediction::Prediction;
use crate::scale::Scale;
use crate::shown::{RowLimits, Shown};
use crate::tokenizer::{RowJob, Tokenizer};

/// Rows of one decision. Its buffers are reused from decision to decision.
///
/// Job rows are counted from 1; row 0 is the idle row.
#[derive(Debug, Default)]
pub struct Observation {
    /// Token of the idle row.
    idle: Vec<u16>,
    /// Tokens of the job rows, `width` values each.
    tokens: Vec<u16>,
    /// Real numbers of the job rows, `inputs` values each; empty unless the tokenizer has some.
    numbers: Vec<f32>,
    /// Working memory for another order of the rows.
    spare_tokens: Vec<u16>,
    spare_numbers: Vec<f32>,
    /// Number of jobs that each job row stands for and that may be chosen.
    counts: Vec<u32>,
    /// Number of rows of ready jobs; those of coming jobs are after them.
    ready_rows: usize,
    /// Attention bias of each row, the idle row first.
    bias: Vec<f32>,
    /// Each ready job and its row; 0 for one without a row.
    jobs: Vec<(JobId, u32)>,
    /// Sparse attention; none if attention is dense.
    sparsity: Option<Sparsity>,
    /// Greatest number of job rows of a decision with as many ready jobs.
    capacity: usize,
    /// Share of the ready jobs with rows that are urgent, 0 to 1; see [`Tokenizer::is_urgent`].
    urgent: f32,
    /// Number of values of a token.
    width: usize,
    /// Number of real numbers of a row.
    inputs: usize,
    advice: Advice,
    outlook: Outlook,
    shown: Shown,
    firm: FirmHistory,
    /// Number of jobs and row of each slack bin; working memory.
    bins: Vec<(u32, u32)>,
    /// Open-addressing hash table of (round, row). An entry is valid only in its own round, so the table need not be
    /// cleared for each decision.
    table: Vec<(u32, u32)>,
    /// Number of the current round.
    round: u32,
}

impl Observation {
    /// Prepares for a system. Without this call, the advice of simple schedulers may rest on another system.
    pub fn start(&mut self, system: &System) {
        self.advice.start(system);
        self.firm.start(system);
    }

    /// Notes what has happened since the last decision. Each view has to be noted once, also where nothing is read,
    /// for numbers that rest on the outcomes of earlier jobs.
    pub fn note(&mut self, view: &SystemView<'_>) {
        self.firm.note(view);
    }

    /// Reads the ready jobs of a view. With `by_job`, or if the tokenizer says so, every job has a row of its own, in
    /// deadline order, as sparse attention needs it; only jobs with the same deadline and token share one. This has no
    /// effect where some jobs have no rows or coming ones have some ([`Tokenizer::leaves_out`]).
    pub fn read(&mut self, tokenizer: &Tokenizer, scale: &Scale, view: &SystemView<'_>, by_job: bool) {
        let history = std::mem::take(&mut self.firm);
        self.read_with(&history, tokenizer, scale, view, by_job);
        self.firm = history;
    }

    /// Reads the ready jobs of a view as [`Observation::read`] does, of a run whose history is kept elsewhere. Nothing
    /// else of what an observation keeps changes what it reads, so one can serve any number of runs and stays in the
    /// processor's cache where theirs would not.
    pub fn read_after(
        &mut self,
        history: &FirmHistory,
        tokenizer: &Tokenizer,
        scale: &Scale,
        view: &SystemView<'_>,
        by_job: bool,
    ) {
        self.advice.forget();
        self.read_with(history, tokenizer, scale, view, by_job);
    }

    fn read_with(
        &mut self,
        history: &FirmHistory,
        tokenizer: &Tokenizer,
        scale: &Scale,
        view: &SystemView<'_>,
        by_job: bool,
    ) {
        let by_job = (by_job || tokenizer.sparse) && !tokenizer.leaves_out();
        self.idle.clone_from(&scale.idle);
        self.tokens.clear();
        self.numbers.clear();
        self.counts.clear();
        self.jobs.clear();
        self.sparsity = None;
        let limits = RowLimits::of(tokenizer.most_rows, view.cores());
        let coming = if tokenizer.coming { view.system.tasks().len().min(limits.coming) } else { 0 };
        self.capacity = view.active.len().min(limits.ready) + coming;
        self.reserve(tokenizer, self.capacity);
        let urgent = match tokenizer.is_slack_alone() && !by_job {
            true => self.read_slacks(tokenizer, scale, view),
            false => self.read_tokens(history, tokenizer, scale, view, by_job),
        };
        let seen = self.jobs.iter().filter(|(_, row)| *row > 0).count();
        self.urgent = urgent as f32 / seen.max(1) as f32;
        self.bias.push(0.0);
        self.bias.extend(self.counts.iter().map(|count| if *count == 1 { 0.0 } else { (*count as f32).ln() }));
        if tokenizer.long_slack_reserve != 0.0 {
            for row in 1..=self.counts.len() {
                let bin = tokenizer.bin(self.token(row as u32), self.real(row as u32), scale);
                self.bias[row] += if tokenizer.is_long(bin) { tokenizer.long_slack_reserve } else { 0.0 };
            }
        }
        self.counts[self.ready_rows..].fill(0);
    }

    /// Reads rows whose token is the slack bin alone, in the order of the bins. Returns the number of urgent jobs.
    fn read_slacks(&mut self, tokenizer: &Tokenizer, scale: &Scale, view: &SystemView<'_>) -> usize {
        (self.width, self.inputs) = (1, 0);
        let Observation { tokens, counts, jobs, bins, .. } = self;
        bins.clear();
        bins.resize(tokenizer.bins + 2, (0, 0));
        jobs.extend(view.ready().map(|(id, job)| {
            let bin = tokenizer.slack_token(job, view.now, scale);
            bins[usize::from(bin)].0 += 1;
            (id, u32::from(bin))
        }));
        let mut urgent = 0;
        for (bin, (count, row)) in (0..).zip(&mut *bins).filter(|(_, (count, _))| *count > 0) {
            tokens.push(bin);
            counts.push(*count);
            *row = counts.len() as u32;
            urgent += if tokenizer.is_urgent(bin) { *count as usize } else { 0 };
        }
        jobs.iter_mut().for_each(|(_, row)| *row = bins[*row as usize].1);
        self.ready_rows = self.counts.len();
        urgent
    }

    /// Reads rows with any tokens. Returns the number of urgent jobs.
    fn read_tokens(
        &mut self,
        history: &FirmHistory,
        tokenizer: &Tokenizer,
        scale: &Scale,
        view: &SystemView<'_>,
        by_job: bool,
    ) -> usize {
        let (ask_advisors, ask_planners) = (tokenizer.asks_advisors(), tokenizer.asks_planners());
        self.advice.ask(view, scale, ask_advisors, ask_planners);
        // Deadline order, whatever the order of the view: sums over rows in another order may round differently and
        // change Q-values.
        self.jobs.extend(self.advice.ready().iter().map(|id| (*id, 0)));
        if !by_job {
            self.prepare_table();
        }
        self.width = tokenizer.width();
        self.inputs = tokenizer.real_input().map_or(0, |real| real.inputs);
        if tokenizer.needs_outlook() {
            let Observation { advice, outlook, jobs, .. } = self;
            let ready = jobs.iter().map(|(id, _)| *id);
            outlook.read(view, scale, ready, |take| advice.arrivals(view, scale, ask_planners, take));
        }
        let limits = RowLimits::of(tokenizer.most_rows, view.cores());
        if tokenizer.most_rows.is_some() {
            let densities = self.outlook.known().iter().map(|known| known.map(|known| known.density));
            self.shown.choose(view, &self.jobs, densities, limits);
        }
        let mut urgent = 0;
        for place in 0..self.jobs.len() {
            // What is never chosen while others wait has no row: that it is there changes nothing for the others.
            let is_impossible = || view.job(self.jobs[place].0).is_impossible(view.now);
            let is_left_out = tokenizer.most_rows.is_some() && !self.shown.is_shown(place);
            if is_left_out || tokenizer.skips_impossible && is_impossible() {
                continue;
            }
            // The token is appended as a new row, and removed again if an equal row exists.
            self.push_ready_row(history, tokenizer, scale, view, place);
            let row = self.counts.len() as u32 + 1;
            urgent += usize::from(tokenizer.is_urgent(tokenizer.bin(self.token(row), self.real(row), scale)));
            self.jobs[place].1 = if by_job { row } else { self.first_equal_row(row) };
            if self.jobs[place].1 == row {
                self.counts.push(1);
            } else {
                self.counts[self.jobs[place].1 as usize - 1] += 1;
                self.tokens.truncate((row as usize - 1) * self.width);
                self.numbers.truncate((row as usize - 1) * self.inputs);
            }
        }
        if by_job {
            self.order_equal_deadlines(view);
        }
        self.ready_rows = self.counts.len();
        if tokenizer.coming {
            self.push_coming_rows(history, tokenizer, scale, view, limits.coming);
        }
        urgent
    }

    /// Appends the row of the ready job at a place of the deadline order.
    fn push_ready_row(
        &mut self,
        history: &FirmHistory,
        tokenizer: &Tokenizer,
        scale: &Scale,
        view: &SystemView<'_>,
        place: usize,
    ) {
        let id = self.jobs[place].0;
        let (job, at) = (view.job(id), view.now);
        let known = if tokenizer.needs_outlook() { self.outlook.known()[place] } else { None };
        let prediction = match (known, tokenizer.needs_outlook()) {
            (Some(known), _) => known.prediction,
            (None, true) => Prediction::default(),
            (None, false) => scale.prediction(job, at),
        };
        let row = RowJob { job, at, kind: RowKind::of(job, at), advice: self.advice.about(id), prediction };
        self.push_row(history, tokenizer, scale, view, (&row, known));
    }

    /// Appends a row for the next job of each task that comes before the last ready deadline. A row stands for all jobs
    /// that come together, and no job refers to it. The first ones have rows, at most `limit`.
    fn push_coming_rows(
        &mut self,
        history: &FirmHistory,
        tokenizer: &Tokenizer,
        scale: &Scale,
        view: &SystemView<'_>,
        limit: usize,
    ) {
        for place in 0..self.outlook.coming().min(limit) {
            let (id, arrivals) = self.outlook.coming_at(place);
            self.counts.push(u32::try_from(arrivals.jobs).unwrap_or(u32::MAX).max(1));
            let at = arrivals.first;
            if tokenizer.is_kind_alone()
                && let Some(numbers) = self.outlook.numbers_of_coming(id, at, scale, history.about(id))
            {
                self.tokens.push(RowKind::Coming as u16);
                self.push_numbers(tokenizer, &numbers);
                continue;
            }
            let task = &view.system.tasks()[id];
            let job = Job::first(id, task)
                .with_release(at)
                .with_deadline(Time(at.0.saturating_add(task.deadline.0)))
                .with_fastest(view.system.machine().fastest(id));
            let (kind, advice, prediction) = (RowKind::Coming, JobAdvice::default(), scale.prediction_at_release(id));
            let row = RowJob { job: &job, at, kind, advice, prediction };
            self.push_row(history, tokenizer, scale, view, (&row, None));
        }
    }

    fn push_row(
        &mut self,
        history: &FirmHistory,
        tokenizer: &Tokenizer,
        scale: &Scale,
        view: &SystemView<'_>,
        (row, known): (&RowJob<'_>, Option<Known>),
    ) {
        match tokenizer.is_kind_alone() {
            true => self.tokens.push(row.kind as u16),
            false => tokenizer.row(row, view, scale, &mut self.tokens, &mut self.numbers),
        }
        if !tokenizer.numbers.is_empty() {
            let numbers = self.outlook.numbers(row, known, view, scale, history.about(row.job.task));
            self.push_numbers(tokenizer, &numbers);
        }
    }

    fn push_numbers(&mut self, tokenizer: &Tokenizer, numbers: &[f32; Number::ALL.len()]) {
        match tokenizer.numbers == Number::ALL {
            true => self.numbers.extend_from_slice(numbers),
            false => self.numbers.extend(tokenizer.numbers.iter().map(|number| numbers[*number as usize])),
        }
    }

    /// Orders the rows of jobs with equal deadlines by their tokens, where each job has a row of its own, and merges
    /// those that are equal in both. Sparse attention depends on the order of the rows; this way it does not depend on
    /// the order of the tasks.
    fn order_equal_deadlines(&mut self, view: &SystemView<'_>) {
        let (mut jobs, mut counts) = (std::mem::take(&mut self.jobs), std::mem::take(&mut self.counts));
        let deadline = |job: &(JobId, u32)| view.job(job.0).deadline;
        let (mut tokens, mut numbers) =
            (std::mem::take(&mut self.spare_tokens), std::mem::take(&mut self.spare_numbers));
        let by_row = |a: u32, b: u32| {
            let bits = |row: u32| self.real(row).iter().map(|number| number.to_bits());
            self.token(a).cmp(self.token(b)).then_with(|| bits(a).cmp(bits(b)))
        };
        tokens.clear();
        numbers.clear();
        let mut rows = 0;
        for equal in jobs.chunk_by_mut(|a, b| deadline(a) == deadline(b)) {
            equal.sort_unstable_by(|a, b| by_row(a.1, b.1).then(a.0.cmp(&b.0)));
            let mut before = None;
            for job in equal {
                if before.is_none_or(|before| by_row(before, job.1).is_ne()) {
                    tokens.extend_from_slice(self.token(job.1));
                    numbers.extend_from_slice(self.real(job.1));
                    counts[rows as usize] = 0;
                    rows += 1;
                }
                counts[rows as usize - 1] += 1;
                (before, job.1) = (Some(job.1), rows);
            }
        }
        counts.truncate(rows as usize);
        self.spare_tokens = std::mem::replace(&mut self.tokens, tokens);
        self.spare_numbers = std::mem::replace(&mut self.numbers, numbers);
        (self.jobs, self.counts) = (jobs, counts);
        self.sparsity = Some(Sparsity::paper(self.counts.len()));
    }

    /// Reserves memory for this many rows, so that a later decision with fewer equal jobs allocates nothing.
    fn reserve(&mut self, tokenizer: &Tokenizer, rows: usize) {
        self.tokens.reserve(rows * tokenizer.width());
        self.numbers.reserve(rows * tokenizer.real_input().map_or(0, |real| real.inputs));
        self.spare_tokens.clear();
        self.spare_tokens.reserve(rows * tokenizer.width());
        self.spare_numbers.clear();
        self.spare_numbers.reserve(rows * tokenizer.real_input().map_or(0, |real| real.inputs));
        self.counts.reserve(rows);
        self.bias.clear();
        self.bias.reserve(1 + rows);
    }

    /// Begins a new round of the hash table, and enlarges the table if it is too small for the jobs.
    fn prepare_table(&mut self) {
        let size = (2 * self.jobs.len()).next_power_of_two().max(64);
        if self.table.len() < size || self.round == u32::MAX {
            self.table.clear();
            self.table.resize(size, (0, 0));
            self.round = 0;
        }
        self.round += 1;
    }

    /// Returns the first row that equals row `last`, the one just appended. If there is none, enters `last` in the
    /// table and returns it.
    fn first_equal_row(&mut self, last: u32) -> u32 {
        let mix = |hash: u64, value: u64| (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let four = |four: &[u16]| four.iter().fold(0, |four, value| four << 16 | u64::from(*value));
        let hash = self.token(last).chunks(4).fold(0, |hash, values| mix(hash, four(values)));
        let two = |two: &[f32]| two.iter().fold(0, |two, value| two << 32 | u64::from(value.to_bits()));
        // Rows that agree in the first numbers, which say most of a job, are compared anyway.
        let first = &self.real(last)[..self.inputs.min(HASHED_NUMBERS)];
        let hash = first.chunks(2).fold(hash, |hash, values| mix(hash, two(values)));
        let mask = self.table.len() - 1;
        let mut place = (hash >> 32) as usize & mask;
        loop {
            let (round, row) = self.table[place];
            if round != self.round {
                self.table[place] = (self.round, last);
                return last;
            }
            if self.token(row) == self.token(last) && self.real(row) == self.real(last) {
                return row;
            }
            place = (place + 1) & mask;
        }
    }

    /// Returns the input of the network.
    pub fn rows(&self) -> Rows<'_> {
        Rows { idle: &self.idle, jobs: &self.tokens, real: &self.numbers, bias: &self.bias, sparsity: self.sparsity }
    }

    /// Sets the value of the idle feature at a place, for a feature that the system does not decide.
    pub(crate) fn set_idle(&mut self, place: usize, value: u16) {
        if let Some(feature) = self.idle.get_mut(place) {
            *feature = value;
        }
    }

    /// Halves the blocks that sparse attention looks into; has no effect on dense attention.
    pub fn halve_attention(&mut self) {
        self.sparsity = self.sparsity.map(Sparsity::halved);
    }

    /// Number of jobs that each job row stands for and that may be chosen, without the idle row. It is 0 for coming
    /// jobs.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Each ready job with its row, which is counted from 1; 0 for one that the tokenizer skips or leaves out.
    pub fn jobs(&self) -> &[(JobId, u32)] {
        &self.jobs
    }

    /// Whether the jobs of a row, which is counted from 1 or 0 for none, may be chosen.
    pub fn may_choose(&self, row: u32) -> bool {
        row.checked_sub(1).is_some_and(|place| self.counts[place as usize] > 0)
    }

    /// Number of simple schedulers that would run a ready job; zero if the tokenizer does not ask them.
    pub fn supporters(&self, id: JobId) -> u32 {
        let JobAdvice { advisors, planners, .. } = self.advice.about(id);
        advisors.count_ones() + planners.count_ones()
    }

    /// Token of a job row, which is counted from 1.
    pub fn token(&self, row: u32) -> &[u16] {
        &self.tokens[(row as usize - 1) * self.width..][..self.width]
    }

    /// Real numbers of a job row, which is counted from 1; empty unless slack is continuous.
    pub fn real(&self, row: u32) -> &[f32] {
        &self.numbers[(row as usize - 1) * self.inputs..][..self.inputs]
    }

    /// Greatest number of job rows of a decision with as many ready jobs.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Number of job rows, without the idle row.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// Share of the ready jobs with rows that are urgent, 0 to 1; see [`Tokenizer::is_urgent`].
    pub fn urgent(&self) -> f32 {
        self.urgent
    }
}

/// Numbers of a row that its hash is made of.
const HASHED_NUMBERS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Task, TaskSet};

    /// Each job with its token and the number of jobs that share the token.
    fn seen(observation: &Observation) -> Vec<(JobId, u16, u32)> {
        let of = |(id, row): &(JobId, u32)| {
            let place = *row as usize - 1;
            (*id, observation.tokens[place], observation.counts[place])
        };
        let mut seen: Vec<_> = observation.jobs.iter().map(of).collect();
        seen.sort_unstable();
        seen
    }

    #[test]
    fn slacks_alone_make_the_rows_that_tokens_make() {
        for (tokenizer, jobs) in [Tokenizer::paper(), Tokenizer { features: vec![], bins: 7, ..Tokenizer::full() }]
            .into_iter()
            .flat_map(|tokenizer| [0, 1, 30, 500].map(|jobs| (tokenizer.clone(), jobs)))
        {
            // Some jobs are late by wcet, and some of these are impossible.
            let task = |index: u64| {
                Task::periodic(format!("t{index}"), Time(1_000), Time(100 + index))
                    .with_bcet(Time(60))
                    .with_deadline(Time(200 + index * 131 % 1_499))
            };
            let system = TaskSet::new("test", (0..jobs.max(1)).map(task).collect(), 1).system;
            let first = |(id, task)| Job::first(id, task);
            let ready: Vec<Job> = system.task_ids().zip(system.tasks()).map(first).take(jobs as usize).collect();
            let active: Vec<JobId> = (0..jobs as u32).rev().map(JobId).collect();
            let view = SystemView::new(Time(170), &system, &active, &ready, &[None]);
            let scale = Scale::of(&tokenizer, &system);
            let (mut one, mut other) = (Observation::default(), Observation::default());
            for _ in 0..2 {
                one.read(&tokenizer, &scale, &view, false);
                other.tokens.clear();
                other.counts.clear();
                other.jobs.clear();
                let urgent = other.read_tokens(&FirmHistory::default(), &tokenizer, &scale, &view, false);
                assert_eq!(seen(&one), seen(&other));
                assert!(one.tokens.is_sorted_by(|a, b| a < b), "each once: {:?}", one.tokens);
                assert_eq!(one.urgent, urgent as f32 / jobs.max(1) as f32);
                assert_eq!(one.bias.len(), 1 + one.distinct());
            }
            assert!(jobs < 500 || one.distinct() > 4, "{}", one.distinct());
        }
    }
}
