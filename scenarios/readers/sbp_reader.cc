#include "scenarios/readers/sbp_reader.h"

#include <optional>
#include <set>

#include <fmt/format.h>

#include "scenarios/readers/strategy_shapes.h"
#include "sim/base/error.h"
#include "workloads/strategies/strategy_sbp.h"

namespace rehearse {
namespace {

uint32_t ReadCount(const JsonReader& reader) { return static_cast<uint32_t>(reader.Integer()); }

// The entry of a matrix in "products", by the name of its weight or the default.
JsonReader ProductOf(const JsonReader& products, const std::string& name) {
  return products.At(products.Has(name) ? name : "default");
}

void CheckNames(const JsonReader& products, const Network& network) {
  std::vector<std::string> names = {"default"};
  std::set<std::string> known;
  for (const NetworkMatrix& matrix : network.matrices) {
    if (known.insert(matrix.name).second) names.push_back(matrix.name);
  }
  products.AllowKeys(names);
}

// [p0, p1, p2], each a number of machines (one rank each) or [machines, ranks of a machine].
SbpNumbers ReadNumbers(const JsonReader& reader) {
  SbpNumbers numbers;
  const std::vector<JsonReader> parts = reader.Elements();
  if (parts.size() != 3) reader.Expected("[p0, p1, p2]");
  for (size_t i = 0; i < 3; ++i) {
    if (!parts[i].IsArray()) {
      numbers.nodes[i] = ReadCount(parts[i]);
      continue;
    }
    const std::vector<JsonReader> pair = parts[i].Elements();
    if (pair.size() != 2) parts[i].Expected("[machines, ranks of a machine]");
    numbers.nodes[i] = ReadCount(pair[0]);
    numbers.gpus[i] = ReadCount(pair[1]);
  }
  return numbers;
}

Strategy ReadByNumbers(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(SbpNumbersShape());
  SbpOptions options;
  options.nodes = ReadCount(reader.At("nodes"));
  options.gpus = ReadCount(reader.At("gpus"));
  const JsonReader products = reader.At("products");
  CheckNames(products, network);
  for (const NetworkMatrix& matrix : network.matrices) {
    if (matrix.tied && products.Has(matrix.name)) {
      products.At(matrix.name)
          .Fail(fmt::format("\"{}\" is tied to \"{}\" and follows from it", matrix.name,
                            network.matrices[*matrix.tied].name));
    }
    options.products.push_back(matrix.tied ? Exchanged(options.products[*matrix.tied])
                                           : ReadNumbers(ProductOf(products, matrix.name)));
  }
  options.overlap_all_reduce = reader.At("overlap_all_reduce").Bool();
  options.overlap_gradients = reader.At("overlap_gradients").Bool();
  return MakeSbp(options, network, reader.place());
}

// The file begins with the outermost axis, our layouts with the innermost.
Layout ReadLayout(const JsonReader& reader, size_t axes) {
  const std::vector<JsonReader> entries = reader.Elements();
  if (entries.size() != axes)
    reader.Expected(fmt::format("{} placements, one for each axis", axes));
  Layout layout;
  for (size_t i = entries.size(); i-- > 0;) {
    const std::optional<Placement> placement = ParsePlacement(entries[i].String());
    if (!placement || *placement == P()) entries[i].Expected("\"S(0)\", \"S(1)\" or \"B\"");
    layout.push_back(*placement);
  }
  return Nested(layout);
}

Strategy ReadByLayouts(const JsonReader& object, const Network& network) {
  const JsonReader reader = object.As(SbpLayoutsShape());
  std::vector<MeshAxis> axes;
  uint64_t ranks = 1;
  const std::vector<JsonReader> sizes = reader.At("mesh").Elements();
  if (sizes.empty() || sizes.size() > kMostAxes) {
    reader.At("mesh").Expected(fmt::format("1 to {} sizes of axes", kMostAxes));
  }
  for (size_t i = sizes.size(); i-- > 0;) {
    axes.push_back({fmt::format("axis{}", i), ReadCount(sizes[i])});
    ranks *= axes.back().size;
    if (ranks > static_cast<uint64_t>(kMostMeshRanks)) {
      reader.At("mesh").Fail(fmt::format("more than {} ranks", kMostMeshRanks));
    }
  }
  const JsonReader products = reader.At("products");
  CheckNames(products, network);
  std::vector<ProductLayouts> layouts;
  for (const NetworkMatrix& matrix : network.matrices) {
    const JsonReader product = ProductOf(products, matrix.name).As(SbpProductShape());
    ProductLayouts own{.x = ReadLayout(product.At("x"), axes.size()),
                       .w = ReadLayout(product.At("w"), axes.size()),
                       .rest = {}};
    if (product.Has("rest")) own.rest = ReadLayout(product.At("rest"), axes.size());
    layouts.push_back(std::move(own));
  }
  return MakeSbp(DeviceMesh(axes), std::move(layouts), reader.At("overlap_all_reduce").Bool(),
                 reader.At("overlap_gradients").Bool());
}

}  // namespace

Strategy ReadSbp(const JsonReader& reader, const Network& network) {
  return reader.Has("mesh") ? ReadByLayouts(reader, network) : ReadByNumbers(reader, network);
}

}  // namespace rehearse
