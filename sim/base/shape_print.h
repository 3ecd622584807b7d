// Tables of what a JSON document may say (sim/base/json_shape.h), for people and for editors.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_shape.h"

namespace rehearse {

// One kind of document, as `rehearse schema` knows it.
struct DocumentShape {
  std::string name;     // "scenario"
  std::string about;    // a sentence: what it is, who reads or writes it
  std::string version;  // "rehearse.calibration.v1"; "" where files of that kind say none
  JsonShape shape;
};

// A page: every object with its keys; for objects that are documents of their own, only which one.
std::string ShapeText(const DocumentShape& document, const std::vector<DocumentShape>& others);

// A JSON Schema, draft 7, which editors take.
nlohmann::ordered_json JsonSchema(const DocumentShape& document);

}  // namespace rehearse
