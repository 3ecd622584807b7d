#include "tools/foreign/machines/import_rates.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace import_rates_test {

TEST(ImportRatesTest, SocketsAreAsFastAsNcclThinks) {
  const auto rate = [](const char* arch, const char* vendor, int family, int model) {
    ProcessorKind kind{arch, vendor, std::nullopt, std::nullopt};
    if (family >= 0) kind.family = static_cast<uint32_t>(family);
    if (model >= 0) kind.model = static_cast<uint32_t>(model);
    return BetweenSockets(kind).value_or(BytesPerSecond(0)).value() / 1e9;
  };
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 79), 6);    // Broadwell
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 85), 10);   // Skylake
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 143), 22);  // Sapphire Rapids
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 207), 40);  // Emerald Rapids
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 173), 40);  // Granite Rapids
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 23, 49), 16);  // Rome
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 25, 1), 24);   // Milan
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 175, 1), 24);  // as older NCCL added up
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 26, 2), 32);   // Turin
  EXPECT_EQ(rate("x86_64", "CentaurHauls", 7, 0x5b), 9);
  EXPECT_EQ(rate("ppc64", "", -1, -1), 32);
  EXPECT_EQ(rate("arm64", "", -1, -1), 6);
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, -1), 0);  // not said
  EXPECT_EQ(rate("", "", -1, -1), 0);
}

TEST(ImportRatesTest, NvLinksAreAsFastAsNcclThinks) {
  const auto rate = [](uint32_t sm) {
    return NvLinksOf(sm, 1, Seconds(0)).Capacity().value() / 1e9;
  };
  EXPECT_DOUBLE_EQ(rate(60), 18);
  EXPECT_DOUBLE_EQ(rate(70), 20);
  EXPECT_DOUBLE_EQ(rate(80), 20);
  EXPECT_DOUBLE_EQ(rate(86), 12);
  EXPECT_DOUBLE_EQ(rate(90), 20.6);
  EXPECT_DOUBLE_EQ(rate(100), 40.1);
}

TEST(ImportRatesTest, PcieIsAsFastAsNcclThinks) {
  const auto rate = [](const char* speed, uint32_t lanes) {
    return PcieLinkOf({ParseGigatransfers(speed).value_or(0), lanes}, Seconds(0))
               .Capacity()
               .value() /
           1e9;
  };
  EXPECT_DOUBLE_EQ(rate("2.5 GT/s", 16), 3);
  EXPECT_DOUBLE_EQ(rate("5 GT/s", 16), 6);
  EXPECT_DOUBLE_EQ(rate("8.0 GT/s PCIe", 16), 12);
  EXPECT_DOUBLE_EQ(rate("16 GT/s", 8), 12);
  EXPECT_DOUBLE_EQ(rate("32.0 GT/s PCIe", 16), 48);
  EXPECT_DOUBLE_EQ(rate("64.0 GT/s PCIe", 1), 6);
  for (const char* speed : {"", "Unknown", "16", "17 GT/s", "1e9 GT/s", "-16 GT/s", "nan GT/s"})
    EXPECT_FALSE(ParseGigatransfers(speed)) << speed;
}

TEST(ImportRatesTest, AnAssumedPortIsWhatItsSlotIsMadeFor) {
  EXPECT_EQ(PortOfSlot({8, 16}), 100e3);   // 126 Gbit/s
  EXPECT_EQ(PortOfSlot({16, 16}), 200e3);  // 252
  EXPECT_EQ(PortOfSlot({32, 16}), 400e3);  // 504
  EXPECT_EQ(PortOfSlot({64, 16}), 800e3);  // 968
  EXPECT_EQ(PortOfSlot({8, 4}), 25e3);     // 31.5
  EXPECT_EQ(PortOfSlot({2.5, 1}), 10e3);   // 2; no port is slower
}

}  // namespace import_rates_test
}  // namespace rehearse
