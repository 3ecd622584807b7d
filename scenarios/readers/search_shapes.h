// The table of a scenario's "search", which `rehearse search` reads (scenarios/searching/search.h
// says what it means) and all other commands ignore; and the axes that it has in common with
// studies.
#pragma once

#include "sim/base/json_shape.h"

namespace rehearse {

const ObjectShape& SearchShape();
const ObjectShape& ConstraintShape();

// ---- Axes ---------------------------------------------------------------------------------------

JsonShape ChangesShape();  // paths of a scenario and their values, as --set takes them

const ObjectShape& ValuesShape();   // of one path
const ObjectShape& ChoicesShape();  // several changes at a time
const ObjectShape& ChoiceShape();
const ObjectShape& FactorsShape();       // all ways to write a number as a product
const ObjectShape& SbpPlacementShape();  // all (p0, p1, p2) of a product

}  // namespace rehearse
