#include "sim/base/json_change.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_change_fields.h"
#include "sim/base/visible_text.h"

namespace rehearse {

std::string ToText(const JsonChange& change) {
  std::string where;
  if (!change.file.empty()) where = " in " + change.file;
  if (change.line > 0) where += fmt::format(", line {}", change.line);
  return VisibleText(fmt::format("changed{}: {} = {}, {}", where, change.path, change.is,
                                 change.was.empty() ? "was not there" : "was " + change.was));
}

namespace {

void ReadAnyText(const JsonReader& reader, std::string* text) { *text = reader.value().dump(); }
void WriteAnyText(const std::string& text, nlohmann::ordered_json* to) {
  if (text.empty()) return;
  *to = nlohmann::ordered_json::parse(text, nullptr, false);
  if (to->is_discarded()) *to = text;
}

bool HadValue(const JsonChange& change) { return !change.was.empty(); }

}  // namespace

FieldShape AnyJsonText() { return ReadBy(Anything(), ReadAnyText, WriteAnyText); }

const Fields<JsonChange>& ChangeFields() {
  static const Fields<JsonChange> fields(
      "change", "What --set and similar options changed in a file.",
      {{"file", &JsonChange::file, AText(), Required(), "which file", "\"data\""},
       {"line", &JsonChange::line, AWhole(1, std::numeric_limits<int>::max()),
        Optional("there was no such line"), "line of the old value"},
       {"path", &JsonChange::path, AText(), Required(), "path of the value", "\"node.nics\""},
       {"was", &JsonChange::was, AnyJsonText(), WrittenIf<HadValue>("there was none"),
        "the value before; long ones shortened"},
       {"is", &JsonChange::is, AnyJsonText(), Required(), "the value now; long ones shortened",
        "8"}});
  return fields;
}

nlohmann::ordered_json ToJson(const std::vector<JsonChange>& changes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const JsonChange& change : changes) ChangeFields().Write(change, &list.emplace_back());
  return list;
}

}  // namespace rehearse
