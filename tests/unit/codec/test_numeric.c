/* Codecs that change numbers, against what numcodecs 0.16 makes of the same arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/codec.h"

#define TYPE(k, n)                                                                                 \
    {                                                                                              \
        .kind = CM_KIND_##k, .nbytes = n                                                           \
    }
#define B1 TYPE(BOOL, 1)
#define I1 TYPE(INT, 1)
#define I2 TYPE(INT, 2)
#define I4 TYPE(INT, 4)
#define I8 TYPE(INT, 8)
#define U1 TYPE(UINT, 1)
#define U2 TYPE(UINT, 2)
#define U4 TYPE(UINT, 4)
#define U8 TYPE(UINT, 8)
#define F2 TYPE(FLOAT, 2)
#define F4 TYPE(FLOAT, 4)
#define F8 TYPE(FLOAT, 8)

/* Elements as they lie, encoded, and decoded again (NULL: as they were), in hexadecimal. */
static const struct row {
    const char *name;
    cm_dtype type;
    uint64_t nelem;
    cm_codec_spec spec;
    const char *plain, *encoded, *decoded;
} rows[] = {
    {"delta i1 as i1",
     I1,
     11,
     {.id = CM_CODEC_DELTA, .dtype = I1, .astype = I1},
     "223da03df9031ad55fa6d3",
     "221b639dbc0a17bb8a472d",
     NULL},
    {"delta i2 as i4",
     I2,
     11,
     {.id = CM_CODEC_DELTA, .dtype = I2, .astype = I4},
     "e8ff0e00edffb6ffa5ff9cffa5ffb9ff6300c2ff1e00",
     "e8ffffff26000000dfffffffc9ffffffeffffffff7ffffff0900000014000000aa0000005fffffff5c000000",
     NULL},
    {"delta u2 as u2",
     U2,
     11,
     {.id = CM_CODEC_DELTA, .dtype = U2, .astype = U2},
     "bb003a0046006c004100f3002c00e000c700d3001c00",
     "bb007fff0c002600d5ffb20039ffb400e7ff0c0049ff",
     NULL},
    {"delta i8 as i8",
     I8,
     11,
     {.id = CM_CODEC_DELTA, .dtype = I8, .astype = I8},
     "eaffffffffffffff1900000000000000feffffffffffffff210000000000000023000000000000002000000000000"
     "000a8ffffffffffffff5b000000000000000b000000000000005000000000000000d2ffffffffffffff",
     "eaffffffffffffff2f00000000000000e5ffffffffffffff23000000000000000200000000000000fdfffffffffff"
     "fff88ffffffffffffffb300000000000000b0ffffffffffffff450000000000000082ffffffffffffff",
     NULL},
    {"delta u1 as i4",
     U1,
     11,
     {.id = CM_CODEC_DELTA, .dtype = U1, .astype = I4},
     "5adb2e105da91ed9553888",
     "5a0000008100000053000000e20000004d0000004c00000075000000bb0000007c000000e300000050000000",
     NULL},
    {"delta f4 as f4",
     F4,
     11,
     {.id = CM_CODEC_DELTA, .dtype = F4, .astype = F4},
     "442644c231860ac11ff180c2246b843f0078f2bf5f7873c1d69551c2e4799ec10a445ac2588587c21ed43341",
     "442644c2b8842142b2405fc2cc02834292713bc05f2955c1beb714c2e458024218070bc2981a53c1dcff9d42",
     "442644c230860ac11ff180c2406b843fe477f2bf5c7873c1d59551c2e2799ec109445ac2588587c220d43341"},
    {"delta f8 as f8",
     F8,
     11,
     {.id = CM_CODEC_DELTA, .dtype = F8, .astype = F8},
     "829330f0d6bb4bc04bedd521e5414d40be62233729ea4140376e386f03f958c0b86832c27f362b40ffffca85fc8a4"
     "bc088265d621e72fa3f09fe8981ea730140958fb9aef9da58c062600cda9d5727c0db51be8c399429c0",
     "829330f0d6bb4bc066400309de7e5c401a1565d577af36c0cb0f65050cf760c04ebb7e67d35f5c4016cd2b3b4e2c5"
     "1c033e9dd788d5e4c4014ab6d416debe03f85dfc502996659c0890378f305f05540c88b8f95dde4f1bf",
     "829330f0d6bb4bc04aedd521e5414d40bd62233729ea4140386e386f03f958c0b06832c27f362b400000cb85fc8a4"
     "bc060265d621e72fa3ff5fd8981ea730140958fb9aef9da58c060600cda9d5727c0d951be8c399429c0"},
    {"delta f8 as f4",
     F8,
     11,
     {.id = CM_CODEC_DELTA, .dtype = F8, .astype = F4},
     "7604dfabcd0c484073633d7342894dc0e91f6ed87773424030e796f96c794bc07b7048ff859030c0f078383d07034"
     "5c0a0a100acf01b5240a77975af20693c4053412e448b655e40f421a5cb430c404091094d18f41f4540",
     "6d6640424058d6c2e9f2bf4293b3b7c25089194244accbc1a2ebe442881a30c2195aba424bfbb2c20a762241",
     "000000a0cd0c48400000006042894dc0000000e077734240000000e06c794bc0000000c0859030c00000002007034"
     "5c0000000b0f01b5240000000c020693c40000000508b655e40000000e0430c404000000030f41f4540"},
    {"delta f2 as f2",
     F2,
     11,
     {.id = CM_CODEC_DELTA, .dtype = F2, .astype = F2},
     "415195cf01c33854f5ccb8483fbc9d4f90cc9ec70f4a",
     "415186d4b54e705475d5514f40c9e14f16d25149ef4c",
     "415196cf08c33854f4ccba4830bc9e4f8ecc96c7134a"},
    {"delta i4 as f4",
     I4,
     11,
     {.id = CM_CODEC_DELTA, .dtype = I4, .astype = F4},
     "4f00000045000000e8ffffffa1ffffff2a000000b1ffffff16000000beffffff580000002300000062000000",
     "00009e42000020c10000bac200008ec2000009430000f2c20000ca420000b0c200001a43000054c200007c42",
     NULL},
    {"fixedscaleoffset f8 as u1",
     F8,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F8, .astype = U1, .scale = 1.5, .offset = 270},
     "7040ad459a25714029b27c5e6ef57340652461f69a4c72403dc82ab344897140ba7f9c207954714010691210c3467"
     "340eaabf273736e71407418605aef287140e317ca4f7a847340f90bf7b30d417140cf6cdfddd1587240",
     "074a22100b3a0d073f0923",
     "abaaaaaaaa2a71405555555555f57340abaaaaaaaa4a7240abaaaaaaaa8a71405555555555557140abaaaaaaaa4a7"
     "340abaaaaaaaa6a7140abaaaaaaaa2a7140000000000080734000000000004071405555555555557240"},
    {"fixedscaleoffset f8 as i2",
     F8,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F8, .astype = I2, .scale = 10, .offset = 273.15},
     "7040ad459a25714029b27c5e6ef57340652461f69a4c72403dc82ab344897140ba7f9c207954714010691210c3467"
     "340eaabf273736e71407418605aef287140e317ca4f7a847340f90bf7b30d417140cf6cdfddd1587240",
     "0c00ce01c4004a00290061013a000e0087011d00cc00",
     "99999999992571409999999999f5734000000000004c7240cccccccccc88714000000000005471403333333333477"
     "34033333333336f7140cccccccccc2871400000000000847340cccccccccc407140cccccccccc587240"},
    {"fixedscaleoffset f4 as i2",
     F4,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F4, .astype = I2, .scale = 10, .offset = 273.15},
     "d22c894373ab9f43d8649243264a8c43c9a38a4319369a439c738b437b478943d2239c436e088a438fc69243",
     "0c00ce01c4004a00290061013a000e0087011d00cc00",
     "cd2c8943cdac9f430060924366468c4300a08a439a399a439a798b436646894300209c4366068a4366c69243"},
    {"fixedscaleoffset f4 as f4",
     F4,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F4, .astype = F4, .scale = 3, .offset = 273.15},
     "d22c894373ab9f43d8649243264a8c43c9a38a4319369a439c738b437b478943d2239c436e088a438fc69243",
     "0000804000000b4300006c420000b041000040410000d44200008841000080400000ea420000104100007442",
     "de3d8943debd9f4388689243de3d8c4333938a43de3d9a4388688b43de3d894333139c4333138a43debd9243"},
    {"fixedscaleoffset f8 as f4",
     F8,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F8, .astype = F4, .scale = 0.1, .offset = 1.5},
     "7040ad459a25714029b27c5e6ef57340652461f69a4c72403dc82ab344897140ba7f9c207954714010691210c3467"
     "340eaabf273736e71407418605aef287140e317ca4f7a847340f90bf7b30d417140cf6cdfddd1587240",
     "0000d841000000420000e8410000e0410000e0410000f8410000e0410000d8410000f8410000d8410000e841",
     "0000000000f8704000000000001874400000000000387240000000000098714000000000009871400000000000787"
     "34000000000009871400000000000f8704000000000007873400000000000f870400000000000387240"},
    {"fixedscaleoffset f2 as i2",
     F2,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F2, .astype = I2, .scale = 2, .offset = 273},
     "495cfd5c935c625c555cd25c5c5c4a5ce15c505c965c",
     "02005c0028000f00080047000c0003004e0006002900",
     "485cfc5c945c625c545cd25c5c5c4a5ce05c505c965c"},
    {"fixedscaleoffset f4 as u4",
     F4,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET,
      .dtype = F4,
      .astype = U4,
      .scale = 1000000.0,
      .offset = 200},
     "d22c894373ab9f43d8649243264a8c43c9a38a4319369a439c738b437b478943d2239c436e088a438fc69243",
     "507e6e04b8f91c0780d48705d88acd0450319b04f0657606a0f7b304e8ab71042841b10640ac8804887a9305",
     NULL},
    {"fixedscaleoffset f8 as i8",
     F8,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET,
      .dtype = F8,
      .astype = I8,
      .scale = 1000000000000.0,
      .offset = 0.25},
     "7040ad459a25714029b27c5e6ef57340652461f69a4c72403dc82ab344897140ba7f9c207954714010691210c3467"
     "340eaabf273736e71407418605aef287140e317ca4f7a847340f90bf7b30d417140cf6cdfddd1587240",
     "e713eaea4af90000a8270ecd35220100bfc798c50f0a01000b0cb43ef5fe0000effe3cf9f4fb0000405eb50748180"
     "1001b3036006ffd00001fe8df687bf9000061010a1dca1b010015e97d61dafa00008cec0a84c10a0100",
     "7540ad459a25714024b27c5e6ef573406c2461f69a4c724043c82ab344897140b97f9c20795471400d691210c3467"
     "340e4abf273736e71407118605aef287140df17ca4f7a847340010cf7b30d417140ce6cdfddd1587240"},
    {"fixedscaleoffset f4 as f8",
     F4,
     11,
     {.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F4, .astype = F8, .scale = 7, .offset = 1},
     "d22c894373ab9f43d8649243264a8c43c9a38a4319369a439c738b437b478943d2239c436e088a438fc69243",
     "0000000000e49d40000000000068a1400000000000ec9f400000000000949e400000000000389e400000000000d0a"
     "0400000000000649e400000000000ec9d40000000000006a1400000000000149e40000000000000a040",
     "9224894392a49f43b76d924325498c4392a48a43db369a43b76d8b432549894392249c4300008a4325c99243"},
    {"quantize f8 as f8, 1 digits",
     F8,
     11,
     {.id = CM_CODEC_QUANTIZE, .dtype = F8, .astype = F8, .keepbits = (uint32_t)1},
     "cec5963a3e4fb1bfcea0bcf13bd011c06854f498604fe1bfa9d55f3385c62a403295e201ffac14c066034c14a72f2"
     "9c0ccc054aa115e32c0106eba2d9c6100c0c03c183c392e0cc0179e6ad00f350540461da157dd9112c0",
     "000000000000b0bf0000000000c011c0000000000000e2bf0000000000c02a400000000000c014c00000000000202"
     "9c000000000006032c000000000008000c00000000000000cc0000000000000054000000000008012c0",
     "000000000000b0bf0000000000c011c0000000000000e2bf0000000000c02a400000000000c014c00000000000202"
     "9c000000000006032c000000000008000c00000000000000cc0000000000000054000000000008012c0"},
    {"quantize f8 as f4, 3 digits",
     F8,
     11,
     {.id = CM_CODEC_QUANTIZE, .dtype = F8, .astype = F4, .keepbits = (uint32_t)3},
     "cec5963a3e4fb1bfcea0bcf13bd011c06854f498604fe1bfa9d55f3385c62a403295e201ffac14c066034c14a72f2"
     "9c0ccc054aa115e32c0106eba2d9c6100c0c03c183c392e0cc0179e6ad00f350540461da157dd9112c0",
     "00008abd00808ec000800abf003456410068a5c0007c49c100f092c1001003c0007061c000b02940009094c0",
     "000000000040b1bf0000000000d011c0000000000050e1bf0000000080c62a400000000000ad14c000000000802f2"
     "9c000000000005e32c000000000006200c000000000002e0cc0000000000036054000000000009212c0"},
    {"quantize f4 as f4, 2 digits",
     F4,
     11,
     {.id = CM_CODEC_QUANTIZE, .dtype = F4, .astype = F4, .keepbits = (uint32_t)2},
     "f2798abde0818ec0057b0abf2a345641f867a5c0397d49c18df092c1e10c03c0ca7161c07fa82940eb8e94c0",
     "000090bd00808ec000000abf004056410080a5c0008049c100f092c1000003c0008061c000802940008094c0",
     "000090bd00808ec000000abf004056410080a5c0008049c100f092c1000003c0008061c000802940008094c0"},
    {"quantize f4 as f2, 0 digits",
     F4,
     11,
     {.id = CM_CODEC_QUANTIZE, .dtype = F4, .astype = F2, .keepbits = (uint32_t)0},
     "f2798abde0818ec0057b0abf2a345641f867a5c0397d49c18df092c1e10c03c0ca7161c07fa82940eb8e94c0",
     "008000c400bc804a00c580ca80cc00c000c4004200c5",
     "00000080000080c0000080bf000050410000a0c0000050c1000090c1000000c0000080c0000040400000a0c0"},
    {"quantize f8 as f8, -1 digits",
     F8,
     11,
     {.id = CM_CODEC_QUANTIZE, .dtype = F8, .astype = F8, .keepbits = (uint32_t)-1},
     "cec5963a3e4fb1bfcea0bcf13bd011c06854f498604fe1bfa9d55f3385c62a403295e201ffac14c066034c14a72f2"
     "9c0ccc054aa115e32c0106eba2d9c6100c0c03c183c392e0cc0179e6ad00f350540461da157dd9112c0",
     "000000000000008000000000000020c00000000000000080000000000000304000000000000020c00000000000003"
     "0c000000000000030c000000000000000800000000000000080000000000000000000000000000020c0",
     "000000000000008000000000000020c00000000000000080000000000000304000000000000020c00000000000003"
     "0c000000000000030c000000000000000800000000000000080000000000000000000000000000020c0"},
    {"quantize f8 as f8, 5 digits",
     F8,
     11,
     {.id = CM_CODEC_QUANTIZE, .dtype = F8, .astype = F8, .keepbits = (uint32_t)5},
     "cec5963a3e4fb1bfcea0bcf13bd011c06854f498604fe1bfa9d55f3385c62a403295e201ffac14c066034c14a72f2"
     "9c0ccc054aa115e32c0106eba2d9c6100c0c03c183c392e0cc0179e6ad00f350540461da157dd9112c0",
     "00000000004fb1bf000000003cd011c000000000604fe1bf0000000085c62a400000000000ad14c000000000a72f2"
     "9c000000080115e32c0000000009c6100c000000000382e0cc0000000001035054000000000de9112c0",
     "00000000004fb1bf000000003cd011c000000000604fe1bf0000000085c62a400000000000ad14c000000000a72f2"
     "9c000000080115e32c0000000009c6100c000000000382e0cc0000000001035054000000000de9112c0"},
    {"bitround f4, 0 bits",
     F4,
     11,
     {.id = CM_CODEC_BITROUND, .keepbits = 0},
     "f2798abde0818ec0057b0abf2a345641f867a5c0397d49c18df092c1e10c03c0ca7161c07fa82940eb8e94c0",
     "000080bd000080c0000000bf00008041000080c0000080c1000080c1000000c0000080c000000040000080c0",
     "000080bd000080c0000000bf00008041000080c0000080c1000080c1000000c0000080c000000040000080c0"},
    {"bitround f4, 5 bits",
     F4,
     11,
     {.id = CM_CODEC_BITROUND, .keepbits = 5},
     "f2798abde0818ec0057b0abf2a345641f867a5c0397d49c18df092c1e10c03c0ca7161c07fa82940eb8e94c0",
     "00008cbd000090c000000cbf000058410000a4c0000048c1000094c1000004c0000060c000002840000094c0",
     "00008cbd000090c000000cbf000058410000a4c0000048c1000094c1000004c0000060c000002840000094c0"},
    {"bitround f4, 23 bits",
     F4,
     11,
     {.id = CM_CODEC_BITROUND, .keepbits = 23},
     "f2798abde0818ec0057b0abf2a345641f867a5c0397d49c18df092c1e10c03c0ca7161c07fa82940eb8e94c0",
     "f2798abde0818ec0057b0abf2a345641f867a5c0397d49c18df092c1e10c03c0ca7161c07fa82940eb8e94c0",
     NULL},
    {"bitround f8, 12 bits",
     F8,
     11,
     {.id = CM_CODEC_BITROUND, .keepbits = 12},
     "cec5963a3e4fb1bfcea0bcf13bd011c06854f498604fe1bfa9d55f3385c62a403295e201ffac14c066034c14a72f2"
     "9c0ccc054aa115e32c0106eba2d9c6100c0c03c183c392e0cc0179e6ad00f350540461da157dd9112c0",
     "00000000004fb1bf0000000000d011c000000000004fe1bf0000000000c72a400000000000ad14c00000000000302"
     "9c000000000005e32c000000000006200c000000000002e0cc0000000000035054000000000009212c0",
     "00000000004fb1bf0000000000d011c000000000004fe1bf0000000000c72a400000000000ad14c00000000000302"
     "9c000000000005e32c000000000006200c000000000002e0cc0000000000035054000000000009212c0"},
    {"bitround f2, 3 bits",
     F2,
     11,
     {.id = CM_CODEC_BITROUND, .keepbits = 3},
     "54ac74c454b8b24a2bc54cca98cc18c00cc34d41a4c4",
     "80ac80c480b8804a00c580ca80cc00c000c3804180c4",
     "80ac80c480b8804a00c580ca80cc00c000c3804180c4"},
    {"astype i8 as i1",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = I1},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "0001ff7f802cc0ff0039fd",
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c00000000000"
     "000c0ffffffffffffffffffffffffffffff00000000000000003900000000000000fdffffffffffffff"},
    {"astype i8 as u1",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = U1},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "0001ff7f802cc0ff0039fd",
     "00000000000000000100000000000000ff000000000000007f0000000000000080000000000000002c00000000000"
     "000c000000000000000ff0000000000000000000000000000003900000000000000fd00000000000000"},
    {"astype i8 as i2",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = I2},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "00000100ffff7f0080ff2c01c063ffff00003930fdff",
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063000000000000ffffffffffffffff00000000000000003930000000000000fdffffffffffffff"},
    {"astype i8 as u4",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = U4},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "0000000001000000ffffffff7f00000080ffffff2c010000c063ffffffffff7f0000008039300000fdffffff",
     "00000000000000000100000000000000ffffffff000000007f0000000000000080ffffff000000002c01000000000"
     "000c063ffff00000000ffffff7f0000000000000080000000003930000000000000fdffffff00000000"},
    {"astype i8 as u8",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = U8},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     NULL},
    {"astype i8 as f2",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = F2},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "0000003c00bcf05700d8b05ce2f8007c00fc007c00fc",
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffff0000000000000080000000000000008000000000000000800000000000000080"},
    {"astype i8 as f4",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = F4},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "000000000000803f000080bf0000fe42000000c30000964300401cc70000004f000000cf00008053000080de",
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffff000000800000000000000080ffffffff000000000001000000000000000000c0"},
    {"astype i8 as f8",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = F8},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "0000000000000000000000000000f03f000000000000f0bf0000000000c05f4000000000000060c00000000000c07"
     "240000000000088e3c00000c0ffffffdf41000000000000e0c10090030300007042000000000000d0c3",
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff393000000001000000000000000000c0"},
    {"astype i8 as b1",
     I8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = I8, .astype = B1},
     "00000000000000000100000000000000ffffffffffffffff7f0000000000000080ffffffffffffff2c01000000000"
     "000c063ffffffffffffffffff7f0000000000000080ffffffff3930000000010000fdffffffffffffbf",
     "0001010101010101010101",
     "000000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000"
     "00001000000000000000100000000000000010000000000000001000000000000000100000000000000"},
    {"astype u8 as f4",
     U8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = U8, .astype = F4},
     "00000000000000000100000000000000ff00000000000000000000000000008000000000000400800100000000002"
     "00001000001000000000300000200000000070000000000000008000000000000000900000000000000",
     "000000000000803f00007f430000005f0400005f0000005a0000804b0100004c0000e0400000004100001041",
     "00000000000000000100000000000000ff00000000000000000000000000008000000000000400800000000000002"
     "00000000001000000000400000200000000070000000000000008000000000000000900000000000000"},
    {"astype u8 as f8",
     U8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = U8, .astype = F8},
     "00000000000000000100000000000000ff00000000000000000000000000008000000000000400800100000000002"
     "00001000001000000000300000200000000070000000000000008000000000000000900000000000000",
     "0000000000000000000000000000f03f0000000000e06f40000000000000e043000000800000e0430000000000004"
     "043000000100000704100000018000080410000000000001c4000000000000020400000000000002240",
     "00000000000000000100000000000000ff00000000000000000000000000008000000000000400800000000000002"
     "00001000001000000000300000200000000070000000000000008000000000000000900000000000000"},
    {"astype u8 as i8",
     U8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = U8, .astype = I8},
     "00000000000000000100000000000000ff00000000000000000000000000008000000000000400800100000000002"
     "00001000001000000000300000200000000070000000000000008000000000000000900000000000000",
     "00000000000000000100000000000000ff00000000000000000000000000008000000000000400800100000000002"
     "00001000001000000000300000200000000070000000000000008000000000000000900000000000000",
     NULL},
    {"astype u8 as i2",
     U8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = U8, .astype = I2},
     "00000000000000000100000000000000ff00000000000000000000000000008000000000000400800100000000002"
     "00001000001000000000300000200000000070000000000000008000000000000000900000000000000",
     "00000100ff0000000000010001000300070008000900",
     "00000000000000000100000000000000ff00000000000000000000000000000000000000000000000100000000000"
     "00001000000000000000300000000000000070000000000000008000000000000000900000000000000"},
    {"astype f8 as i1",
     F8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = F8, .astype = I1},
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c0cdcccccccc2c5940cdcccccccc2c59c00000000000fcef403a8c30e28e79453e",
     "000000000102fe649ce000",
     "0000000000000000000000000000000000000000000000000000000000000000000000000000f03f0000000000000"
     "04000000000000000c0000000000000594000000000000059c000000000000040c00000000000000000"},
    {"astype f8 as i2",
     F8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = F8, .astype = I2},
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c0cdcccccccc2c5940cdcccccccc2c59c00000000000fcef403a8c30e28e79453e",
     "000000000000000001000200feff64009cffe0ff0000",
     "0000000000000000000000000000000000000000000000000000000000000000000000000000f03f0000000000000"
     "04000000000000000c0000000000000594000000000000059c000000000000040c00000000000000000"},
    {"astype f8 as i8",
     F8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = F8, .astype = I8},
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c0cdcccccccc2c5940cdcccccccc2c59c00000000000fcef403a8c30e28e79453e",
     "000000000000000000000000000000000000000000000000000000000000000001000000000000000200000000000"
     "000feffffffffffffff64000000000000009cffffffffffffffe0ff0000000000000000000000000000",
     "0000000000000000000000000000000000000000000000000000000000000000000000000000f03f0000000000000"
     "04000000000000000c0000000000000594000000000000059c00000000000fcef400000000000000000"},
    {"astype f8 as f2",
     F8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = F8, .astype = F2},
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c0cdcccccccc2c5940cdcccccccc2c59c00000000000fcef403a8c30e28e79453e",
     "00000080003800b8003e004100c14b564bd6ff7b0000",
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c000000000002c594000000000002c59c00000000000fcef400000000000000000"},
    {"astype f8 as f4",
     F8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = F8, .astype = F4},
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c0cdcccccccc2c5940cdcccccccc2c59c00000000000fcef403a8c30e28e79453e",
     "00000000000000800000003f000000bf0000c03f00002040000020c06666c9426666c9c200e07f4777cc2b32",
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c0000000c0cc2c5940000000c0cc2c59c00000000000fcef40000000e08e79453e"},
    {"astype f8 as b1",
     F8,
     11,
     {.id = CM_CODEC_ASTYPE, .dtype = F8, .astype = B1},
     "00000000000000000000000000000080000000000000e03f000000000000e0bf000000000000f83f0000000000000"
     "44000000000000004c0cdcccccccc2c5940cdcccccccc2c59c00000000000fcef403a8c30e28e79453e",
     "0000010101010101010101",
     "00000000000000000000000000000000000000000000f03f000000000000f03f000000000000f03f000000000000f"
     "03f000000000000f03f000000000000f03f000000000000f03f000000000000f03f000000000000f03f"},
    {"packbits of 1", B1, 1, {.id = CM_CODEC_PACKBITS}, "01", "0780", NULL},
    {"packbits of 7", B1, 7, {.id = CM_CODEC_PACKBITS}, "01000001000001", "0192", NULL},
    {"packbits of 8", B1, 8, {.id = CM_CODEC_PACKBITS}, "0100000100000100", "0092", NULL},
    {"packbits of 9", B1, 9, {.id = CM_CODEC_PACKBITS}, "010000010000010000", "079200", NULL},
    {"packbits of 11", B1, 11, {.id = CM_CODEC_PACKBITS}, "0100000100000100000100", "059240", NULL},
};

static uint8_t *parse_hex(const char *text, size_t *nbytes)
{
    *nbytes = strlen(text) / 2;
    uint8_t *out = malloc(*nbytes);
    assert_non_null(out);
    for (size_t i = 0; i < *nbytes; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return out;
}

static void test_row(void **state)
{
    const struct row *row = *state;
    size_t nplain, nencoded, ndecoded, n;
    uint8_t *plain = parse_hex(row->plain, &nplain);
    uint8_t *encoded = parse_hex(row->encoded, &nencoded);
    uint8_t *decoded = parse_hex(row->decoded ? row->decoded : row->plain, &ndecoded);
    cm_error err = {0};
    cm_chain *chain = NULL;
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    if (!ctx || cm_chain_create(&row->spec, 1, &row->type, 1, &row->nelem, &chain, &err))
        fail_msg("%s", err.text);
    assert_int_equal(cm_chain_decoded_nbytes(chain), nplain);
    uint8_t *out = malloc(cm_chain_encoded_bound(chain) + nplain);
    if (cm_chain_encode(chain, ctx, plain, out, &n, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, nencoded);
    assert_memory_equal(out, encoded, n);
    if (cm_chain_decode(chain, ctx, encoded, nencoded, 0, out, &err))
        fail_msg("%s", err.text);
    assert_memory_equal(out, decoded, ndecoded);
    free(out);
    free(plain);
    free(encoded);
    free(decoded);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
}

/* Sums run on over the blocks of a loop; the rows above have but one. */
static void test_long_delta(void **state)
{
    (void)state;
    enum {
        NELEM = 5000
    };
    static const cm_codec_spec specs[] = {
        {.id = CM_CODEC_DELTA, .dtype = I4, .astype = I4},
        {.id = CM_CODEC_DELTA, .dtype = F4, .astype = F4},
    };
    static const cm_dtype types[] = {I4, F4};
    static union {
        int32_t i[NELEM];
        float f[NELEM];
    } data, back, encoded;
    for (size_t k = 0; k < 2; k++) {
        for (int i = 0; i < NELEM; i++)
            if (k == 0)
                data.i[i] = (int32_t)((uint32_t)i * (uint32_t)i * 3000u);
            else
                data.f[i] = (float)(i * 7 % 1000) * 0.25f;
        uint64_t nelem = NELEM;
        size_t n;
        cm_error err = {0};
        cm_chain *chain = NULL;
        cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
        assert_int_equal(cm_chain_create(&specs[k], 1, &types[k], 1, &nelem, &chain, &err), CM_OK);
        assert_int_equal(cm_chain_encode(chain, ctx, &data, &encoded, &n, &err), CM_OK);
        for (int i = 1; i < NELEM; i++)
            if (k == 0)
                assert_int_equal(encoded.i[i],
                                 (int32_t)((uint32_t)data.i[i] - (uint32_t)data.i[i - 1]));
            else
                assert_true(encoded.f[i] == data.f[i] - data.f[i - 1]);
        assert_int_equal(cm_chain_decode(chain, ctx, &encoded, n, 0, &back, &err), CM_OK);
        assert_memory_equal(&back, &data, sizeof data);
        cm_chain_free(chain);
        cm_codec_ctx_free(ctx);
    }
}

/* The count of padding bits must be that of the chunk. */
static void test_packbits_padding(void **state)
{
    (void)state;
    cm_codec_spec spec = {.id = CM_CODEC_PACKBITS};
    cm_dtype type = B1;
    uint64_t nelem = 11;
    cm_error err = {0};
    cm_chain *chain = NULL;
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    assert_int_equal(cm_chain_create(&spec, 1, &type, 1, &nelem, &chain, &err), CM_OK);
    for (unsigned padding = 0; padding < 256; padding++) {
        uint8_t encoded[3] = {(uint8_t)padding, 0xff, 0xe0}, data[11];
        assert_int_equal(cm_chain_decode(chain, ctx, encoded, 3, 0, data, &err),
                         padding == 5 ? CM_OK : CM_EFORMAT);
    }
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
}

int main(void)
{
    enum {
        NROWS = sizeof rows / sizeof rows[0]
    };
    struct CMUnitTest tests[NROWS + 2] = {[NROWS] = cmocka_unit_test(test_long_delta),
                                          [NROWS + 1] = cmocka_unit_test(test_packbits_padding)};
    for (size_t i = 0; i < NROWS; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = test_row,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests_name("codecs that change numbers", tests, NULL, NULL);
}
