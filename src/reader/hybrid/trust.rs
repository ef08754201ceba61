//! How far bit 56 of pagemap is believed. It says that a page is mapped once, and not that a pin
//! leaves it alone: of a page that fork once shared, and that is the target's alone since, the
//! kernel makes a copy if anything else refers to it still, such as a list of its own
//! (mm/memory.c, `wp_can_reuse_anon_folio`). Either way it charges a fault to who pins.

use super::{Care, Obstacle};
use crate::sys::remote::Charged;

/// Pages that one call may pin, by what the calls before it have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trust(u64);

impl Trust {
    /// Nothing has been pinned yet.
    pub(super) const NEW: Self = Self(STEPS[0]);
    /// Nothing is to be pinned any more.
    pub(super) const LOST: Self = Self(0);
    /// As much as there is.
    pub(super) const WHOLE: Self = Self(u64::MAX);

    /// Pages that the next call may have.
    pub(super) const fn pages(self) -> u64 {
        self.0
    }

    /// After a call to which so many faults were charged.
    pub(super) fn after(self, faults: Option<u64>) -> Self {
        if faults != Some(0) || self == Self::LOST {
            return Self::LOST;
        }
        let next = STEPS.into_iter().find(|&step| step > self.0);
        next.map_or(Self::WHOLE, Self)
    }
}

/// What the calls that pin have shown so far.
pub(super) struct Pins {
    pub(super) trust: Trust,
    /// Faults charged to the tool before the next of them, unless anything has been done since the
    /// last that could cause one.
    pub(super) charged: Option<u64>,
    /// Pages pinned since the lists were emptied.
    pub(super) since: u64,
}

/// After so many pages pinned the CPUs' lists are emptied again.
const RENEW_PAGES: u64 = 8192;

impl Pins {
    pub(super) const fn new(may_pin: bool) -> Self {
        Self {
            trust: if may_pin { Trust::NEW } else { Trust::LOST },
            charged: None,
            since: RENEW_PAGES,
        }
    }

    /// Whether the lists are to be emptied before more is pinned.
    pub(super) fn are_due(&self) -> bool {
        self.since >= RENEW_PAGES && self.trust != Trust::LOST
    }

    /// The lists have been emptied.
    pub(super) const fn renew(&mut self) {
        self.trust = Trust::NEW;
        self.charged = None;
        self.since = 0;
    }

    /// After a call; `own`: of anonymous pages, among others.
    pub(super) fn note(&mut self, charged: Charged, own: bool, care: &mut Care) {
        let faults = charged.map(|(faults, _)| faults);
        care.count_faults(faults);
        if own {
            self.trust = self.trust.after(faults);
            if self.trust == Trust::LOST {
                care.not_pinned = Some(Obstacle::Fault);
            }
        }
        self.charged = charged.map(|(_, now)| now);
    }
}

/// What the first calls may have.
const STEPS: [u64; 3] = [1, 8, 64];

#[cfg(test)]
mod tests {
    use super::{Pins, RENEW_PAGES, Trust};

    #[test]
    fn the_lists_are_emptied_before_the_first_page_and_once_in_many() {
        let mut pins = Pins::new(true);
        assert!(pins.are_due());
        pins.renew();
        pins.since += RENEW_PAGES - 1;
        assert!(!pins.are_due());
        pins.since += 1;
        assert!(pins.are_due());
        pins.trust = Trust::LOST;
        assert!(!pins.are_due() && !Pins::new(false).are_due());
    }

    #[test]
    fn it_is_earned_in_steps_and_lost_at_once_and_for_ever() {
        let calls = [Some(0); 4];
        let earned = calls.into_iter().scan(Trust::NEW, |trust, faults| {
            let pages = trust.pages();
            *trust = trust.after(faults);
            Some(pages)
        });
        assert!(earned.eq([1, 8, 64, u64::MAX]));
        for trust in [Trust::NEW, Trust::WHOLE, Trust::LOST] {
            for faults in [Some(1), None] {
                assert_eq!(trust.after(faults), Trust::LOST);
                assert_eq!(trust.after(faults).after(Some(0)), Trust::LOST);
            }
        }
    }
}
