// Mistakes and malice in NCCL's topology files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/nccl_xml.h"

namespace rehearse {
namespace import_nccl_error_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ImportNcclErrorTest, WhatIsNoTopologyIsSaid) {
  EXPECT_THAT(XmlErrorOf(""), HasSubstr("box.xml: the file is empty"));
  EXPECT_THAT(XmlErrorOf(" \n "), HasSubstr("the file is empty"));
  EXPECT_THAT(XmlErrorOf("{\"a\": 1}"), StartsWith("box.xml:1: there is no XML element"));
  EXPECT_THAT(XmlErrorOf("<!-- nothing -->"), HasSubstr("there is no XML element"));
  EXPECT_THAT(XmlErrorOf("\n<html/>"), StartsWith("box.xml:2: found <html>, expected <system>"));
  EXPECT_THAT(XmlErrorOf("<graphs version=\"1\"/>"), HasSubstr("NCCL_GRAPH_DUMP_FILE"));
  EXPECT_THAT(XmlErrorOf("<system version=\"1\"/><system version=\"1\"/>"),
              HasSubstr("second element"));
  EXPECT_THAT(XmlErrorOf("<system/>"), HasSubstr("no version"));
  EXPECT_THAT(XmlErrorOf("<system version=\"3\"/>"), HasSubstr("version of <system> is \"3\""));
  EXPECT_THAT(XmlErrorOf("<system version=\"1\"/>"), HasSubstr("there is no GPU"));
  EXPECT_THAT(XmlErrorOf(System("")), HasSubstr("there is no GPU"));
}

TEST(ImportNcclErrorTest, BinaryAndHugeFilesAreRefused) {
  EXPECT_THAT(XmlErrorOf(std::string("<system\n\0", 9)),
              StartsWith("box.xml:2: found the byte 0x00"));
  EXPECT_THAT(XmlErrorOf("\x7f"
                         "ELF\x02\x01"),
              HasSubstr("this is not text"));
  EXPECT_THAT(XmlErrorOf(std::string((size_t{64} << 20) + 1, 'x')), HasSubstr("at most 64 MiB"));
  std::string many = "<system version=\"1\">";
  for (int i = 0; i < 1'000'001; ++i) many += "<a/>";
  EXPECT_THAT(XmlErrorOf(many), HasSubstr("more than 1000000 elements"));
}

TEST(ImportNcclErrorTest, ACutFileIsRefusedWhereverItIsCut) {
  const std::string whole = SmallMachine();
  const size_t end = whole.find("</system>") + 9;
  for (size_t length = 1; length < end; length += 7) {
    const std::string error = XmlErrorOf(whole.substr(0, length));
    EXPECT_THAT(error, StartsWith("box.xml:")) << length;
  }
  EXPECT_THAT(XmlErrorOf(whole.substr(0, whole.find("</system>"))),
              StartsWith("box.xml:20: the file ends in the middle of an element"));
}

TEST(ImportNcclErrorTest, WhatIsNotWellFormedHasItsLine) {
  EXPECT_THAT(XmlErrorOf("<system version=\"1\">\n<cpu></pci>\n</system>\n"),
              StartsWith("box.xml:2: this is not well-formed XML"));
  EXPECT_THAT(XmlErrorOf(System("\n<pci busid=\"0000:01:00.0\" busid=\"0000:02:00.0\"/>")),
              StartsWith("box.xml:4: <pci> has the attribute \"busid\" twice"));
  EXPECT_THAT(XmlErrorOf(System("some text")), HasSubstr("found the text \"\\nsome text"));
}

TEST(ImportNcclErrorTest, EntitiesAreRefused) {
  EXPECT_THAT(XmlErrorOf(R"(<?xml version="1.0"?>
<!DOCTYPE lolz [ <!ENTITY lol "lol"> <!ENTITY lol2 "&lol;&lol;&lol;&lol;"> ]>
<system version="1">&lol2;</system>)"),
              StartsWith("box.xml:2: the file has a DOCTYPE"));
  EXPECT_THAT(XmlErrorOf("<!DOCTYPE system SYSTEM \"file:///etc/passwd\"><system version=\"1\"/>"),
              HasSubstr("DOCTYPE"));
  // Without a DOCTYPE, an entity is only a strange text.
  EXPECT_THAT(XmlErrorOf(System("<pci busid=\"&xxe;\"/>")), HasSubstr("expected a PCI bus id"));
}

TEST(ImportNcclErrorTest, DeepNestingIsRefused) {
  std::string deep;
  for (int i = 0; i < 40; ++i)
    deep += fmt::format("<pci busid=\"0000:{:02x}:00.0\" class=\"0x060400\">\n", i);
  for (int i = 0; i < 40; ++i) deep += "</pci>";
  EXPECT_THAT(XmlErrorOf(System(deep)),
              StartsWith("box.xml:35: <pci> is nested more than 32 deep"));
  std::string deeper = "<system version=\"1\">";
  for (int i = 0; i < 200'000; ++i) deeper += "<a>";
  for (int i = 0; i < 200'000; ++i) deeper += "</a>";
  EXPECT_THAT(XmlErrorOf(deeper + "</system>"), HasSubstr("there is no GPU"));
}

TEST(ImportNcclErrorTest, DuplicatesAreRefusedWithBothLines) {
  const std::string bus = "<pci busid=\"0000:01:00.0\" class=\"0x060400\">";
  EXPECT_THAT(XmlErrorOf(System(bus + "</pci>\n" + bus + "</pci>")),
              StartsWith("box.xml:4: bus id 0000:01:00.0 appears already in line 3"));
  // A cycle can only be written as a device inside itself.
  EXPECT_THAT(XmlErrorOf(System(bus + "\n" + bus + "</pci></pci>")), HasSubstr("appears already"));
  // The same with NVML's longer domain and in capitals.
  EXPECT_THAT(XmlErrorOf(System("<pci busid=\"0000:1b:00.0\"/><pci busid=\"00000000:1B:00.0\"/>")),
              HasSubstr("appears already"));
  EXPECT_THAT(XmlErrorOf("<system version=\"1\"><cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>"),
              StartsWith("box.xml:2: NUMA node 0 appears already in line 1"));
  std::string other = Gpu(1);
  other.replace(other.find("rank=\"1\""), 8, "rank=\"0\"");
  EXPECT_THAT(XmlErrorOf(System(Gpu(0) + "\n" + other)),
              StartsWith("box.xml:4: there is another GPU with rank 0, in line 3"));
  other = Gpu(1);
  other.replace(other.find("dev=\"1\""), 7, "dev=\"0\"");
  EXPECT_THAT(XmlErrorOf(System(Gpu(0) + "\n" + other)), HasSubstr("another GPU with dev 0"));
  EXPECT_THAT(
      XmlErrorOf(System("<pci busid=\"0000:01:00.0\"><gpu rank=\"0\"/><gpu rank=\"1\"/></pci>")),
      HasSubstr("a second <gpu>"));
  EXPECT_THAT(XmlErrorOf(System(Gpu(0) + Nic("0000:20:00.0",
                                             "<net name=\"a\" dev=\"0\"/>\n"
                                             "<net name=\"b\" dev=\"0\"/>"))),
              HasSubstr("another net with dev 0, in line 3"));
}

TEST(ImportNcclErrorTest, LinksThatCannotBeAreRefused) {
  EXPECT_THAT(XmlErrorOf(System(Gpu(0, "\n" + NvLink("0000:77:00.0", "4")))),
              StartsWith("box.xml:4: a link leads to \"0000:77:00.0\", but no GPU of this file"));
  EXPECT_THAT(XmlErrorOf(System(Gpu(0, NvLink("0000:11:00.0", "4")) + Gpu(1))),
              HasSubstr("0000:10:00.0 has 4 links to 0000:11:00.0, but that has 0 back"));
  EXPECT_THAT(
      XmlErrorOf(System(Gpu(0, NvLink("0000:11:00.0", "4")) + Gpu(1, NvLink("0000:10:00.0", "2")))),
      HasSubstr("but that has 2 back"));
  EXPECT_THAT(XmlErrorOf(System(Gpu(0, NvLink("0000:11:00.0", "4", "0x010802")))),
              HasSubstr("class \"0x010802\", expected a GPU, an NVSwitch or a processor"));
  EXPECT_THAT(XmlErrorOf(System(Gpu(0, NvLink("here", "4")))), HasSubstr("expected a PCI bus id"));
  EXPECT_THAT(XmlErrorOf(System(Gpu(0, "<nvlink target=\"0000:11:00.0\"/>"))),
              HasSubstr("no count"));
}

TEST(ImportNcclErrorTest, NumbersOutOfRangeAreRefused) {
  for (const char* count :
       {"4000000000", "99999999999999999999999", "0", "-1", "4.5", "four", "0x"})
    EXPECT_THAT(XmlErrorOf(System(Gpu(0, NvLink("0000:11:00.0", count, "0x068000")))),
                HasSubstr("count of <nvlink> is "))
        << count;
  // Many entries, each of which is allowed.
  std::string links;
  for (int i = 0; i < 2; ++i) links += NvLink("0000:11:00.0", "1000", "0x068000");
  EXPECT_THAT(XmlErrorOf(System(Gpu(0, links))), HasSubstr("more than 1024 links"));
  for (const char* speed : {"1e300", "-5", "4000000000", "inf", "nan", "fast"})
    EXPECT_THAT(
        XmlErrorOf(System(
            Gpu(0) + Nic("0000:20:00.0", fmt::format("<net name=\"a\" speed=\"{}\"/>", speed)))),
        HasSubstr("speed of <net> is "))
        << speed;
  EXPECT_THAT(XmlErrorOf(System(Gpu(0) + Nic("0000:20:00.0", "<net latency=\"1e9\"/>"))),
              HasSubstr("latency of <net> is "));
  EXPECT_THAT(XmlErrorOf(System("<pci busid=\"0000:01:00.0\" link_width=\"33\"/>")),
              HasSubstr("link_width of <pci> is \"33\", expected 0 to 32"));
  EXPECT_THAT(XmlErrorOf(System("<pci busid=\"0000:01:00.0\"><gpu rank=\"-1\"/></pci>")),
              HasSubstr("rank of <gpu> is \"-1\""));
  EXPECT_THAT(XmlErrorOf("<system version=\"1\"><cpu numaid=\"x\"/></system>"),
              HasSubstr("numaid of <cpu> is \"x\", expected a whole number"));
  EXPECT_THAT(XmlErrorOf("<system version=\"1\"><cpu/></system>"),
              HasSubstr("<cpu> has no numaid"));
  EXPECT_THAT(XmlErrorOf(System("<pci/>")), HasSubstr("busid of <pci> is \"\""));
  EXPECT_THAT(XmlErrorOf(System("<pci busid=\"12345678901234567\"/>")),
              HasSubstr("expected a PCI bus"));
}

TEST(ImportNcclErrorTest, TooManyOfAnythingAreRefused) {
  std::string cpus = "<system version=\"1\">";
  for (int i = 0; i < 257; ++i) cpus += fmt::format("<cpu numaid=\"{}\"/>", i);
  EXPECT_THAT(XmlErrorOf(cpus + "</system>"), HasSubstr("more than 256 <cpu>"));
  std::string pcis;
  for (int i = 0; i < 10'001; ++i) pcis += fmt::format("<pci busid=\"{:x}\"/>", i);
  EXPECT_THAT(XmlErrorOf(System(pcis)), HasSubstr("more than 10000 <pci>"));
  std::string gpus;
  for (int i = 0; i < 1025; ++i) gpus += fmt::format("<pci busid=\"{:x}\" class=\"0x0302\"/>", i);
  EXPECT_THAT(XmlErrorOf(System(gpus)), HasSubstr("1025 GPUs"));
  std::string nets;
  for (int i = 0; i < 10'001; ++i) nets += fmt::format("<net dev=\"{}\"/>", i);
  EXPECT_THAT(XmlErrorOf(System("<nic>" + nets + "</nic>")), HasSubstr("more than 10000 <net>"));
}

TEST(ImportNcclErrorTest, ADeviceIsOnlyOneThing) {
  EXPECT_THAT(XmlErrorOf(System("<pci busid=\"0000:01:00.0\"><gpu rank=\"0\"/><nic/></pci>")),
              HasSubstr("more than one of a GPU, a NIC and a switch"));
  EXPECT_THAT(
      XmlErrorOf(System(
          "<pci busid=\"0000:01:00.0\"><gpu rank=\"0\"/><pci busid=\"0000:02:00.0\"/></pci>")),
      HasSubstr("more than one of a GPU, a NIC and a switch"));
}

}  // namespace import_nccl_error_test
}  // namespace rehearse
