// An XML file that somebody else wrote: its elements with their lines, and its attributes, checked.
//
// Refused with file and line: what is not well-formed, what defines entities, an attribute that an
// element has twice, text where only elements belong, more than a million elements and attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pugixml.hpp>

namespace rehearse {

// Whether a file may name a DTD. It is never read, and the file itself may not contain one.
enum class Doctype : uint8_t { kRefused, kAllowed };

// pugixml with line numbers. It never expands the document's own entities, parses without recursion
// and takes about 64 bytes per node.
class XmlDocument {
 public:
  // `expected` says what the file should be: "NCCL's topology XML (NCCL_TOPO_DUMP_FILE)".
  XmlDocument(std::string_view text, const std::string& file, const std::string& expected,
              Doctype doctype);

  pugi::xml_node Root() const;  // the only element at the top
  int LineOf(pugi::xml_node node) const { return LineAt(node.offset_debug()); }
  [[noreturn]] void Fail(pugi::xml_node node, const std::string& message) const;

  // The elements in `parent`; text between them is refused, as are twins among their attributes.
  std::vector<pugi::xml_node> Elements(pugi::xml_node parent) const;
  void RefuseTwins(pugi::xml_node node) const;

  static std::string NameOf(pugi::xml_node node);
  static std::string Text(pugi::xml_node node, const char* attribute) {
    return node.attribute(attribute).value();
  }
  // A whole number, decimal or 0x...; nothing when the attribute is missing or empty.
  std::optional<int64_t> Number(pugi::xml_node node, const char* attribute, int64_t minimum,
                                int64_t maximum) const;
  std::optional<uint32_t> Count(pugi::xml_node node, const char* attribute, uint32_t maximum) const;
  // 0 when it is missing or empty.
  double Decimal(pugi::xml_node node, const char* attribute, double minimum, double maximum) const;
  // "0000:1b:00.0" and "00000000:1B:00.0" are the same; NCCL writes "fffffff:ffff:ff" for what it
  // cannot see.
  uint64_t BusId(pugi::xml_node node, const char* attribute) const;

 private:
  int LineAt(std::ptrdiff_t offset) const;
  [[noreturn]] void FailParse(const pugi::xml_parse_result& result, std::string_view text) const;

  const std::string file_;
  std::vector<size_t> line_ends_;
  pugi::xml_document document_;
};

}  // namespace rehearse
