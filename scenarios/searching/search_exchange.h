// Of a search with "per": what is the best with one choice of its axis is tried with the others.
//
// Walks look at a part of a space and may pass by what is good, so that a machine which is better
// in everything would seem to be worse. The best of each choice is therefore simulated with every
// other choice where, by the formula and by what the formula was wrong about it at home, it can be
// expected to be better than what was found there.
#pragma once

#include <cstdint>

#include "scenarios/searching/search.h"

namespace rehearse {

// The search with one choice of the axis that "per" means, which is that axis's only one.
Search OfChoice(const Search& search, uint32_t choice);

// Adds what was simulated to `found`, whose points are in the order of the choices, and within each
// in that of FoundPoints::points. Does nothing where simulations are not chosen by a formula.
void TryBestsElsewhere(const Search& search, const SearchRun& run, FoundPoints* found);

}  // namespace rehearse
