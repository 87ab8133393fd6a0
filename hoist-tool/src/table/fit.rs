//! How wide columns are where a terminal has no room for all that is in them.

/// Blanks between columns.
pub(super) const GAP: usize = 2;
/// Blanks before what a row goes on with in its next line.
pub(super) const INDENT: usize = 4;
/// The width below which no column is cut.
pub(super) const NARROW: usize = 10;

/// Makes lines fit `limit`: columns that say nothing go, the widest with words become narrower, then columns stand closer, and at last
/// rows have several lines. Cells come with their widths. Gives the blanks between columns, and the columns that begin a line.
pub(super) fn fit(
    widths: &mut [usize],
    cells: &[(&str, usize)],
    limit: usize,
) -> (usize, Vec<usize>) {
    let columns = widths.len();
    let line = |widths: &[usize], gap| {
        let shown = widths.iter().filter(|width| **width > 0);
        shown.map(|width| width + gap).sum::<usize>().saturating_sub(gap)
    };
    let column = |at: usize| cells.iter().skip(at).step_by(columns);
    for at in 0..columns {
        let is_empty = cells.len() > columns && column(at).skip(1).all(|(cell, _)| cell.is_empty());
        if line(widths, GAP) > limit && is_empty {
            widths.iter_mut().skip(at).take(1).for_each(|width| *width = 0);
        }
    }
    let whole = widths.to_vec();
    let is_whole = |cell: &str| is_number(cell) || is_target(cell);
    let widest_whole =
        |at| column(at).filter(|(cell, _)| is_whole(cell)).map(|(_, width)| *width).max();
    let least: Vec<_> = (0..columns).map(|at| widest_whole(at).unwrap_or(0).max(NARROW)).collect();
    while line(widths, GAP) > limit {
        let wide = widths.iter_mut().zip(&least).filter(|(width, least)| **width > **least);
        if let Some(width) = wide.map(|(width, _)| width).max_by_key(|width| **width) {
            *width -= 1;
        } else if line(widths, 1) <= limit {
            return (1, Vec::new());
        } else {
            // with room for more lines, words are cut less
            for ((width, whole), least) in widths.iter_mut().zip(&whole).zip(&least) {
                *width = (*whole).min((limit / 3).max(*least));
            }
            return (GAP, folds(widths, limit));
        }
    }
    (GAP, Vec::new())
}

/// The columns that begin a new line, so that each line has as many as it has room for.
fn folds(widths: &[usize], limit: usize) -> Vec<usize> {
    let (mut breaks, mut used) = (Vec::new(), 0);
    for (column, width) in widths.iter().enumerate().filter(|(_, width)| **width > 0) {
        if used > 0 && used + width > limit {
            breaks.push(column);
            used = INDENT;
        }
        used += width + GAP;
    }
    breaks
}

/// Whether a cell is a number, of which no digit may be left out.
fn is_number(cell: &str) -> bool {
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match cell.strip_prefix("0x") {
        Some(digits) => is_hex(digits),
        None => {
            let is_address = matches!(cell.len(), 8 | 16) && is_hex(cell);
            is_address || !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit())
        }
    }
}

/// Whether a cell is what code is for, whose number is at its end: `compute_120f`.
fn is_target(cell: &str) -> bool {
    let number = cell.strip_prefix("compute_").map(|cell| cell.trim_end_matches(['a', 'f']));
    number.is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn architectures_are_not_cut() {
        let cells = ["arch", "options", "compute_120f", "-maxrregcount=96 -O3"]
            .map(|cell| (cell, cell.len()));
        let mut widths = [12, 20];
        assert_eq!(fit(&mut widths, &cells, 26), (2, Vec::new()));
        assert_eq!(widths, [12, 12]);
        assert_eq!(fit(&mut widths, &cells, 24), (2, Vec::new()));
        assert_eq!(widths, [12, 10]);
    }
}
