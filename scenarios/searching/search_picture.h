// What a search found as an SVG: a dot for each simulated point. With one objective it stands at
// what the formula says and at what the simulation says, as AxoNN's Fig. 6 compares them: efficient
// points (SearchQuality) are filled, the formula's first five have a ring. With two objectives it
// stands at both, and the Pareto front is a line. Whatever is drawn says its name and numbers when
// it is pointed at.
#pragma once

#include <string>

#include "scenarios/searching/search.h"

namespace rehearse {

// Throws Error if no point has both numbers.
std::string SearchSvg(const Search& search, const FoundPoints& found);

}  // namespace rehearse
