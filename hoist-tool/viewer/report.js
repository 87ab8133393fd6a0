// The page that `hoist fatbin report` writes: its data are in it.
// @ts-check
"use strict";

show(collect(nothing(), (element("data", HTMLScriptElement).textContent ?? "").split("\n")));
prepare();
present();
