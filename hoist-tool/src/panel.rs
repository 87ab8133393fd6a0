//! Pictures of kernels: what each takes of what there is, and how many warps run by the size of blocks.

use std::io::Write;

use anyhow::Result;
use svg::Document;
use svg::node::element::{Circle, Group, Line as Stroke, Polyline, Style, Title};

use crate::occupancy::Curve;
use crate::picture::{
    LINE, MARGIN, STYLE, WIDTH, end, fitting, letters, plain, rectangle, text, text_end,
};

/// A kernel.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it is called.
    pub title: String,
    /// Where it is.
    pub place: String,
    /// What it takes.
    pub facts: Vec<Fact>,
    /// Warps by the size of blocks, if the limits of the architecture are known.
    pub curve: Option<Curve>,
    /// A size of blocks that is marked.
    pub marked: Option<Mark>,
    /// Threads that a block of it may have at most.
    pub most_threads: Option<u32>,
}

/// Something that a kernel takes.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub words: String,
    /// The part of what there is for one, if that is limited.
    pub share: Option<f64>,
}

/// A size of blocks, and the warps that run.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Threads of a block.
    pub threads: u32,
    /// Warps that an SM runs.
    pub warps: u32,
    /// What is said of it.
    pub words: String,
}

/// What keeps an SM from running more, and its class in the style sheet.
const LIMITERS: [(&str, &str); 6] = [
    ("warps", "warps"),
    ("blocks", "blocks"),
    ("registers", "registers"),
    ("shared memory", "shared"),
    ("barriers", "barriers"),
    ("virtual resources", "virtual"),
];

const PANEL_STYLE: &str = "\
.back{fill:#ececec}.share{fill:#8db8e8}.grid{stroke:#ddd;stroke-width:1}.curve{fill:none;stroke:#999;stroke-width:1.5}\
circle{stroke:#fff;stroke-width:.5}.warps{fill:#3f7fc4}.blocks{fill:#8a67c9}.registers{fill:#d9822b}.shared{fill:#3c9a57}\
.barriers{fill:#c94f6d}.virtual{fill:#808080}.mark{stroke:#b03030;stroke-dasharray:4 3}\
.said{fill:#b03030;paint-order:stroke;stroke:#fff;stroke-width:4px}.over{fill:#999;fill-opacity:.2;stroke:none}\
@media (prefers-color-scheme:dark){.back{fill:#333}.grid{stroke:#3a3a3a}circle{stroke:#1b1b1b}.mark{stroke:#ff8a80}\
.said{fill:#ff8a80;stroke:#1b1b1b}.share{fill:#4c7fb5}}";

/// Pixels: where bars and words of facts begin, a bar, the left of a chart, its height.
const BARS: f64 = 130.0;
const BAR: f64 = 110.0;
const WORDS: f64 = 250.0;
const CHART: f64 = 470.0;
const HEIGHT: f64 = 180.0;
/// Threads of the largest block.
const MOST: u32 = 1024;
/// Threads between the lines of a chart.
const STEP: usize = 128;

/// Where a chart is.
#[derive(Clone, Copy)]
struct Chart {
    top: f64,
    /// Warps that an SM can hold.
    of: u32,
}

impl Chart {
    fn x(threads: u32) -> f64 {
        let right = WIDTH - MARGIN - 10.0;
        CHART + f64::from(threads.min(MOST)) / f64::from(MOST) * (right - CHART)
    }

    fn y(self, warps: u32) -> f64 {
        self.top + HEIGHT * (1.0 - f64::from(warps) / f64::from(self.of.max(1)))
    }
}

/// Writes kernels below one another.
///
/// # Errors
/// If they cannot be written.
pub fn write(title: &str, panels: &[Panel], out: &mut dyn Write) -> Result<()> {
    let style = format!("{STYLE}{PANEL_STYLE}");
    let mut document = Document::new().add(Title::new(plain(title))).add(Style::new(style));
    let limits = |limiter| {
        let mut curves = panels.iter().filter_map(|panel| panel.curve.as_ref());
        curves.any(|curve| curve.limiters.contains(&limiter))
    };
    let mut x = MARGIN;
    for (limiter, class) in LIMITERS.into_iter().filter(|(limiter, _)| limits(*limiter)) {
        let words = format!("limited by {limiter}");
        document = document.add(dot(class, (x + 5.0, MARGIN + 5.0), 4.0));
        document = document.add(text("scale", x + 14.0, MARGIN + 9.0, &words));
        x += letters(&words) + 30.0;
    }
    let mut y = MARGIN + 2.0 * LINE;
    for panel in panels {
        (document, y) = panel.draw(document, y);
    }
    end(document, y, out)
}

impl Panel {
    /// Draws it below `top`, and gives where it ends.
    fn draw(&self, mut document: Document, top: f64) -> (Document, f64) {
        let room = WIDTH - 2.0 * MARGIN;
        let shown = fitting(&self.title, room).unwrap_or_default();
        let head = Group::new().add(Title::new(plain(&self.title)));
        document = document.add(head.add(text("head", MARGIN, top + LINE - 4.0, &shown)));
        let place = fitting(&self.place, room).unwrap_or_default();
        document = document.add(text("scale", MARGIN, top + 2.0 * LINE - 4.0, &place));
        let top = top + 2.0 * LINE + 8.0;
        let mut y = top;
        for fact in &self.facts {
            document = document.add(text("name", MARGIN, y + 10.0, fact.name));
            let mut left = BARS;
            if let Some(share) = fact.share {
                let bar = |class, share: f64| {
                    rectangle(class, (BARS, BARS + BAR * share.clamp(0.0, 1.0)), (y + 1.0, 10.0))
                };
                document = document.add(bar("back", 1.0)).add(bar("share", share));
                left = WORDS;
            }
            let words = fitting(&fact.words, CHART - 40.0 - left).unwrap_or_default();
            document = document.add(text("name", left, y + 10.0, &words));
            y += LINE + 3.0;
        }
        let Some(curve) = &self.curve else {
            let words = "the limits of the architecture are not known";
            document = document.add(text("scale", CHART, top + LINE, words));
            return (document, y.max(top + 2.0 * LINE) + 2.0 * LINE);
        };
        document = self.chart(document, curve, Chart { top, of: curve.of });
        (document, y.max(top + HEIGHT + 2.0 * LINE) + 2.0 * LINE)
    }

    fn chart(&self, mut document: Document, curve: &Curve, chart: Chart) -> Document {
        let bottom = chart.top + HEIGHT;
        for quarter in 0..=4 {
            let warps = curve.of * quarter / 4;
            let y = chart.y(warps);
            document = document.add(line("grid", (Chart::x(0), y), (Chart::x(MOST), y)));
            document = document.add(text_end("scale", CHART - 6.0, y + 4.0, &warps.to_string()));
        }
        for threads in (0..=MOST).step_by(STEP).skip(1) {
            let x = Chart::x(threads);
            document = document.add(line("grid", (x, chart.top), (x, bottom)));
            document =
                document.add(text_end("scale", x + 10.0, bottom + LINE, &threads.to_string()));
        }
        let words = format!("warps of an SM, of {}, by threads of a block", curve.of);
        document = document.add(text("scale", CHART, bottom + 2.0 * LINE, &words));
        if let Some(most) = self.most_threads.filter(|most| *most < MOST) {
            let edges = (Chart::x(most), Chart::x(MOST));
            let words = format!("blocks have at most {most} threads");
            let over = rectangle("over", edges, (chart.top, HEIGHT));
            document = document.add(Group::new().add(Title::new(words)).add(over));
        }
        let places = curve
            .points()
            .map(|(threads, warps, _)| format!("{:.1},{:.1}", Chart::x(threads), chart.y(warps)));
        let places = places.collect::<Vec<_>>().join(" ");
        document = document.add(Polyline::new().set("class", "curve").set("points", places));
        if let Some(mark) = &self.marked {
            let x = Chart::x(mark.threads);
            document = document.add(line("mark", (x, chart.top), (x, bottom)));
        }
        for (threads, warps, limiter) in curve.points() {
            let class = LIMITERS.iter().find(|(of, _)| *of == limiter);
            let class = class.map_or("virtual", |(_, class)| class);
            let words =
                format!("{threads} threads: {warps} of {} warps, limited by {limiter}", curve.of);
            let dot = dot(class, (Chart::x(threads), chart.y(warps)), 3.0);
            document = document.add(Group::new().add(Title::new(words)).add(dot));
        }
        if let Some(mark) = &self.marked {
            let (x, y) = (Chart::x(mark.threads), chart.y(mark.warps));
            // where the curve seldom is
            let is_high = y <= chart.top + HEIGHT * 0.6;
            let y = if is_high { bottom - 8.0 } else { chart.top + LINE };
            let is_right = x + letters(&mark.words) + 8.0 > Chart::x(MOST);
            document = document.add(match is_right {
                true => text_end("said", x - 6.0, y, &mark.words),
                false => text("said", x + 6.0, y, &mark.words),
            });
        }
        document
    }
}

fn dot(class: &str, (x, y): (f64, f64), radius: f64) -> Circle {
    Circle::new()
        .set("class", class)
        .set("cx", format!("{x:.1}"))
        .set("cy", format!("{y:.1}"))
        .set("r", radius)
}

fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Stroke {
    let pixels = |place: f64| format!("{place:.1}");
    Stroke::new()
        .set("class", class)
        .set("x1", pixels(x1))
        .set("y1", pixels(y1))
        .set("x2", pixels(x2))
        .set("y2", pixels(y2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvinfo::occupancy::{Demand, Limiter};

    #[test]
    fn every_limiter_has_a_colour() {
        let all = [
            Limiter::Warps,
            Limiter::Blocks,
            Limiter::Registers,
            Limiter::Shared,
            Limiter::Barriers,
            Limiter::VirtualResources,
        ];
        assert_eq!(all.map(Limiter::name), LIMITERS.map(|(name, _)| name));
        for (_, class) in LIMITERS {
            assert!(PANEL_STYLE.contains(&format!(".{class}{{fill")), "{class}");
        }
    }

    #[test]
    fn names_are_text_and_charts_have_bounds() {
        let demand = Demand { registers: 255, shared: u64::MAX, ..Demand::default() };
        let name = "<script>\u{202e}\u{1b}".repeat(40);
        let panel = Panel {
            title: name.clone(),
            place: name.clone(),
            facts: vec![Fact { name: "shared memory", words: name, share: Some(1e300) }],
            curve: Curve::of(90, demand),
            marked: Some(Mark { threads: u32::MAX, warps: 0, words: String::from("none") }),
            most_threads: Some(0),
        };
        let mut out = Vec::new();
        write("<b>", &[panel.clone(), Panel { curve: None, ..panel }], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert!(!text.contains('\u{202e}') && !text.contains("inf") && !text.contains("NaN"));
    }
}
