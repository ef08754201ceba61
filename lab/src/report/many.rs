//! Things by their names, in the order of their first rows, and not more than a page takes.

use std::collections::HashMap;
use std::hash::Hash;

/// The most rows of one table; of more it is said how many are left out.
pub const ROWS_MAX: usize = 500;

/// The most series of one drawing.
pub const SERIES_MAX: usize = 8;

/// Items by key, keys in the order of their first item.
pub fn grouped<K: Hash + Eq + Clone, T>(items: impl Iterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[place].1.push(item);
    }
    groups
}

/// Keeps the first `most`, and says how many are gone; empty: none.
pub fn cut<T>(items: &mut Vec<T>, most: usize, what: &str) -> String {
    let all = items.len();
    items.truncate(most);
    match all - items.len() {
        0 => String::new(),
        gone => format!("{gone} of {all} {what} are left out here; the rows have them."),
    }
}

/// `3 of 60 processes are no measurement: skipped: exe (2), failed: EPERM (1)`; `None`: all are.
pub fn losses<'w>(whys: impl Iterator<Item = Option<&'w str>>, what: &str) -> Option<String> {
    let mut all = 0;
    let lost = whys.inspect(|_| all += 1).flatten().map(|why| (why, ()));
    let mut reasons = grouped(lost);
    let count: usize = reasons.iter().map(|(_, lost)| lost.len()).sum();
    reasons.sort_by_key(|(_, lost)| std::cmp::Reverse(lost.len()));
    let more = reasons.len().saturating_sub(4);
    let mut words: Vec<String> = reasons
        .iter()
        .take(4)
        .map(|(why, lost)| format!("{} ({})", crate::text::shown(why.as_bytes()), lost.len()))
        .collect();
    if more > 0 {
        words.push(format!("{more} other reasons"));
    }
    let verb = if count == 1 { "is" } else { "are" };
    let words = words.join(", ");
    (count > 0).then(|| format!("{count} of {all} {what} {verb} no measurement: {words}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_their_order() {
        let items = [("b", 1), ("a", 2), ("b", 3)];
        assert_eq!(
            grouped(items.into_iter()),
            [("b", vec![1, 3]), ("a", vec![2])]
        );
    }

    #[test]
    fn what_is_lost_is_counted_by_reason() {
        let whys = [None, Some("late"), Some("gone"), Some("late")];
        assert_eq!(
            losses(whys.into_iter(), "starts").unwrap(),
            "3 of 4 starts are no measurement: late (2), gone (1)."
        );
        assert_eq!(losses([None].into_iter(), "starts"), None);
        let mut items = vec![1, 2, 3];
        assert_eq!(cut(&mut items, 3, "rows"), "");
        assert_eq!(
            cut(&mut items, 1, "rows"),
            "2 of 3 rows are left out here; the rows have them."
        );
    }
}
