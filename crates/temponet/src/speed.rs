//! Choice of a core's speed by a network that has heads for speeds.
//!
//! A network with `n` speeds gives every job row `n` gains over full speed. Speed `i` stands for the share
//! `(i + 1) / (n + 1)` of full speed; a core gets the lowest of the machine's speeds that is no lower. The Q-value of
//! running a job is that at its best speed, so the jobs with the highest of these Q-values, each at its best speed, are
//! the best choice.
//!
//! Behind a shield cores run at full speed: what the shield guarantees is computed for full speed.

use temponet_task::{Speed, System};

/// Returns the speed with the greatest gain over full speed, and that gain: 0 for full speed, whose gain is 0, and 1 +
/// i for the network's speed `i`. Of equal gains the first one counts.
pub fn best_speed(gains: impl Iterator<Item = f32>) -> (u8, f32) {
    (1..).zip(gains).fold((0, 0.0), |best, (speed, gain)| if gain > best.1 { (speed, gain) } else { best })
}

/// Returns the speed of a core for a choice among `speeds` speeds below full speed, counted as in [`best_speed`].
pub fn core_speed(system: &System, speeds: usize, chosen: u8) -> Speed {
    let share = if chosen == 0 { 1.0 } else { f64::from(chosen) / (speeds + 1) as f64 };
    let least = 1000.0 * share - 1e-6;
    system.speeds().iter().copied().find(|speed| f64::from(speed.0) >= least).unwrap_or(Speed::FULL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Task, TaskSet, Time};

    #[test]
    fn a_core_gets_the_lowest_speed_that_is_no_lower_than_the_chosen_one() {
        let mut set = TaskSet::new("s", vec![Task::periodic("t", Time(10), Time(1))], 1);
        set.system.set_speeds([400, 600, 1000].map(Speed).to_vec());
        let system = set.system.clone();
        let speeds = [0, 1, 2, 3].map(|chosen| core_speed(&system, 3, chosen));
        assert_eq!(speeds, [Speed::FULL, Speed(400), Speed(600), Speed::FULL]);
        set.system.set_speeds(vec![Speed::FULL]);
        assert_eq!(core_speed(&set.system, 3, 1), Speed::FULL);
        assert_eq!(best_speed([-1.0, 0.5, 0.5].into_iter()), (2, 0.5));
        assert_eq!(best_speed([-1.0, -0.5].into_iter()), (0, 0.0));
    }
}
